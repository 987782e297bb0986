"""Listens on a socket as badly as it is told: SOCKET UID HOW. It prints how much it heard."""

import os
import socket
import sys

VERSION = b'{"version":"1","pid":7,"started":"2026-11-26T10:00:00Z","state_dir":"/s"}'
path, uid, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
s = socket.socket(socket.AF_UNIX)
s.bind(path)
if how != "refuses":
    os.setresuid(-1, uid, -1)
    s.listen()
print("ready", flush=True)
while True:
    if how == "refuses":
        sys.stdin.read()
        sys.exit()
    conn, _ = s.accept()
    with conn:
        heard = conn.recv(65536)
        print("heard", min(len(heard), 1), flush=True)
        head = b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n" % len(VERSION)
        try:
            conn.sendall(head + (VERSION[:9] if how == "half" else VERSION))
        except OSError:
            pass
