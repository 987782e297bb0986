# For each line "CA PORT HOST" of standard input: uv looks for a package at the
# port of 127.0.0.1, as at the host. It gets there by a proxy, which is in here.
import os
import socket
import subprocess
import sys
import threading


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    finally:
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def carry(near):
    head = b""
    while b"\r\n\r\n" not in head:
        more = near.recv(65536)
        if not more:
            return
        head += more
    port = int(head.split(b" ")[1].rsplit(b":", 1)[1])
    far = socket.create_connection(("127.0.0.1", port))
    near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=copy, args=(near, far), daemon=True).start()
    copy(far, near)


def listen():
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            near, _ = listener.accept()
            threading.Thread(target=carry, args=(near,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


proxy = f"http://127.0.0.1:{listen()}"
uv = os.path.join(os.path.dirname(sys.executable), "uv")
for line in sys.stdin:
    ca, port, host = line.split()
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "SSL_CERT_FILE": ca, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy}
    index = f"https://{host}:{port}/simple"
    done = subprocess.run(
        [uv, "--no-cache", "--no-config", "pip", "compile", "--no-progress", "--python", sys.executable, "--index-url", index, "-"],
        input="a-package\n", capture_output=True, text=True, env=env | {"UV_HTTP_RETRIES": "0"},
    )
    said = " ".join(done.stderr.split())
    if "was not found in the package registry" in said:
        print("taken")
    else:
        print("refused:", said[-400:])
