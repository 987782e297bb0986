"""Runs in the sandbox and times what it is asked to do, a JSON line each."""
import concurrent.futures
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import time

connections = {}


def run(ask):
    began = time.perf_counter()
    done = subprocess.run(ask["argv"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    took = time.perf_counter() - began
    return {"seconds": took, "code": done.returncode, "text": done.stdout.decode(errors="replace")[-2000:]}


def many(ask):
    """Runs commands at the same time; the code is the number of those that failed."""
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(len(ask["many"])) as pool:
        done = list(pool.map(run, [{"argv": argv} for argv in ask["many"]]))
    failed = [one["text"] for one in done if one["code"] != 0]
    return {"seconds": time.perf_counter() - began, "code": len(failed), "text": "".join(failed[:1])}


def spawn(ask):
    began = time.perf_counter()
    pid = os.posix_spawn(ask["argv"][0], ask["argv"], os.environ)
    _, status = os.waitpid(pid, 0)
    return {"seconds": time.perf_counter() - began, "code": status}


def trust(host):
    """The reference inside has a certificate that nobody signed."""
    context = ssl.create_default_context()
    if host.startswith("127."):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def get(ask):
    """One request on a connection that is kept."""
    host = ask["host"]
    if host not in connections:
        connections[host] = http.client.HTTPSConnection(host, context=trust(host))
        connections[host].connect()
        connections[host].sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    began = time.perf_counter()
    connections[host].request("GET", ask["path"], headers=ask.get("headers") or {})
    answer = connections[host].getresponse()
    size = len(answer.read())
    took = time.perf_counter() - began
    return {"seconds": took, "code": 0 if answer.status == 200 else answer.status, "bytes": size}


def listening(ask):
    """Returns when something listens on a local port."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", ask["port"])) == 0:
                return {"code": 0}
        time.sleep(0.02)


verbs = {"run": run, "many": many, "spawn": spawn, "get": get, "listening": listening}
for line in sys.stdin:
    ask = json.loads(line)
    print(json.dumps(verbs[ask["verb"]](ask)), flush=True)
