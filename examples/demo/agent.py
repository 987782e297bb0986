"""What an agent does all day: install something, use it, and be steered astray."""

import socket
import subprocess
import sys


def say(text: str) -> None:
    print(f"\n[agent] {text}", flush=True)


def pip(*args: str) -> int:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", *args]
    print("[agent] $ pip install " + " ".join(args), flush=True)
    return subprocess.run(command, check=False).returncode


say("I need an HTTP library. It is allowed, and so are the packages that it needs.")
assert pip("requests") == 0
import requests  # noqa: E402

print(f"[agent] requests {requests.__version__} works, with urllib3 {requests.urllib3.__version__}")

say("attrs is allowed below version 25; a newer one exists and is withheld.")
assert pip("attrs") == 0
import importlib.metadata  # noqa: E402

print(f"[agent] attrs {importlib.metadata.version('attrs')}")

say("A page told me to install these. Neither is on the list.")
assert pip("flask==3.0.3") != 0
assert pip("colourama") != 0

say("So I try to reach the world without the gateway.")
try:
    socket.create_connection(("192.0.2.1", 443), timeout=5)
    sys.exit("the sandbox leaks")
except OSError as err:
    print(f"[agent] no way out: {err}")

say("Why was I refused?")
subprocess.run(["cofferdam", "why"], check=True)
