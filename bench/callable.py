"""A function of this process, called from a sandbox through the toolkit's provider; beside it the
same calls, by the same client, of a plain HTTP server of this process, from another one. For each
line on stdin it prints a JSON object: the seconds of each call, from inside and on the host."""
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cofferdam.agt import CofferdamSandboxProvider
from cofferdam.agt._tools import CLIENT

CALLS = """
import json, time
from _tool_client import call_tool

took = []
for i in range(21):
    began = time.perf_counter()
    assert call_tool("add", a=i, b=1) == i + 1
    took.append(time.perf_counter() - began)
    time.sleep(0.1)  # ten in a second are what a sandbox may ask for
print(json.dumps(took[1:]))  # the first one is that of a program which begins
"""


def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


class Plain(BaseHTTPRequestHandler):
    """Calls add for whoever asks."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = json.dumps({"result": add(**asked["args"])}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer)
        self.close_connection = True

    def log_message(self, *args):
        pass


def main(workspace):
    """Measures for each line, until there is none."""
    with open(os.path.join(workspace, "_tool_client.py"), "w") as f:
        f.write(CLIENT)
    plain = ThreadingHTTPServer(("127.0.0.1", 0), Plain)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    here = dict(os.environ, TOOL_PROXY_URL=f"http://127.0.0.1:{plain.server_address[1]}", PYTHONPATH=workspace)
    document = {"name": "bench", "defaults": {"action": "allow"}, "tool_allowlist": ["add"]}
    with CofferdamSandboxProvider(tools={"add": add}) as provider:
        session = provider.create_session("bench", policy=document)
        for _ in sys.stdin:
            inside = provider.execute_code("bench", session.session_id, CALLS).result
            if not inside.success:
                raise RuntimeError(f"the calls from the sandbox failed: {inside.stderr}")
            outside = subprocess.run([sys.executable, "-c", CALLS], env=here, check=True, capture_output=True, text=True)
            print(json.dumps({"inside": json.loads(inside.stdout), "outside": json.loads(outside.stdout)}), flush=True)


main(sys.argv[1])
