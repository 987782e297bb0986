"""Serves a directory inside the sandbox: plain on the first port, TLS on the second."""
import functools
import http.server
import ssl
import sys
import threading

directory, plain, secure, certificate = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body of a small answer go out together


def server(port):
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Handler, directory=directory))


tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(certificate)
second = server(secure)
second.socket = tls.wrap_socket(second.socket, server_side=True)
threading.Thread(target=server(plain).serve_forever, daemon=True).start()
second.serve_forever()
