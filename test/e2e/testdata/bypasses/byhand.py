"""byhand.py HOST PATH...: asks a registry for paths in every form that a gateway
might take for something else, and keeps whatever comes back. The first is the
package's file; with CONTROL each is asked for once."""

import os
import re
import socket
import ssl
import sys

host, paths = sys.argv[1], sys.argv[2:]
count = 0


def send(text, name=host):
    """Sends bytes over TLS to the host and keeps the answers."""
    global count
    count += 1
    trust = ssl.create_default_context()
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, 443), timeout=20) as plain:
            with trust.wrap_socket(plain, server_hostname=name) as conn:
                conn.sendall(text.encode("latin-1"))
                with open("answer-%d" % count, "wb") as out:
                    first = b""
                    while data := conn.recv(65536):
                        first = first or data
                        out.write(data)
        return first.split(b"\r\n")[0].decode("latin-1")
    except OSError as e:
        return "%s" % e


def ask(method, target, *header, version="1.1", name=host):
    has_host = any(h.lower().startswith("host:") for h in header)
    lines = ["%s %s HTTP/%s" % (method, target, version)] + list(header) + ([] if has_host else ["Host: " + host]) + ["Connection: close", "", ""]
    print(method, target, *header, "->", send("\r\n".join(lines), name))


def spellings(path):
    """Other ways to write a path."""
    head, _, tail = path.rpartition("/")
    yield path.replace(tail, "%%%02x" % ord(tail[0]) + tail[1:]) if tail else path + "%2f"
    yield path.replace(tail, "%%25%02x" % ord(tail[0]) + tail[1:]) if tail else path + "%252f"
    yield path.upper()
    yield head + "%2f" + tail
    yield head + "%252f" + tail
    yield head + "//" + tail
    yield head + "/./" + tail
    yield head + "/x/../" + tail
    yield head + "/%2e%2e/" + head.rpartition("/")[2] + "/" + tail
    yield "/" + path
    yield path + "/"
    yield path + "."
    yield path + ";a=b"
    yield path + "?a=b"
    yield path + "#x"
    yield path + "%00"
    yield path + "%20"
    yield path + "\\"
    yield "https://" + host + path
    yield "http://" + host + path
    yield re.sub("^/", "", path)


def in_every_form(path):
    ask("HEAD", path)
    ask("GET", path, version="1.0")
    for header in [
        "Range: bytes=0-", "Range: bytes=0-99", "Range: bytes=-99", "Range: bytes=0-0,1-", "If-None-Match: *", "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT",
        "Accept: */*", "Accept: application/octet-stream", "Accept: text/html", "Accept-Encoding: identity", "Accept-Encoding: gzip, br, zstd",
        "X-Forwarded-Host: " + host, "X-Original-URL: " + path, "X-Rewrite-URL: " + path, "X-HTTP-Method-Override: GET", "Authorization: Bearer x",
        "Cache-Control: only-if-cached", "Pragma: no-cache", "Via: 1.1 x", "Upgrade: h2c", "Expect: 100-continue",
    ]:
        ask("GET", path, header)
    ask("GET", path, 'If-Range: "x"', "Range: bytes=0-")
    for named in [host + ":443", host.upper(), host + ".", "downloads.cofferdam.internal", "127.0.0.1", host + "@elsewhere.example"]:
        ask("GET", path, "Host: " + named)
    ask("GET", path, "Host: " + host, name="python.example" if host != "python.example" else "node.example")
    for method in ["POST", "PUT", "OPTIONS", "TRACE", "PROPFIND", "get", "CONNECT"]:
        ask(method, path, "Content-Length: 0")
    for target in spellings(path):
        ask("GET", target)
    # A request behind one that is answered, and one inside of another's body.
    one = "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path, host)
    print("behind another ->", send("GET /nothing-here HTTP/1.1\r\nHost: %s\r\n\r\n" % host + one + one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")))
    print("inside a body ->", send("GET /nothing-here HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (host, len(one)) + one))


for path in paths:
    ask("GET", path)
if not os.environ.get("CONTROL"):
    in_every_form(paths[0])
    for path in paths[1:]:
        ask("HEAD", path)
        ask("GET", path, "Range: bytes=0-")
        ask("GET", path, "If-None-Match: *")
        ask("GET", path + "/")
        ask("GET", path.replace("/", "//"))
