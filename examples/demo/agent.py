"""What an agent does all day: install something, use it, and be steered astray."""

import os
import socket
import subprocess
import sys


def say(text: str) -> None:
    print(f"\n[agent] {text}", flush=True)


def run(*command: str) -> int:
    print("[agent] $ " + " ".join(command), flush=True)
    return subprocess.run(command, check=False).returncode


def pip(*args: str) -> int:
    return run("pip", "install", "--quiet", "--no-input", *args)


def npm(*args: str) -> int:
    return run("npm", "install", *args)


# --- Python ---------------------------------------------------------------
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

# --- Node -----------------------------------------------------------------
say("Now some JavaScript: chalk 4 and what it needs. Newer ones exist and are withheld.")
os.makedirs("/tmp/js", exist_ok=True)
os.chdir("/tmp/js")
assert npm("--silent", "chalk") == 0
assert run("node", "-p", "'chalk ' + require('chalk/package.json').version") == 0

say("This one carried malware. The next one is allowed, but runs a script when it is installed.")
assert npm("event-stream@3.3.6") != 0
assert npm("esbuild") != 0

# --- Go -------------------------------------------------------------------
say("And a Go program, with a module that is allowed and checked against the checksum database.")
os.makedirs("/tmp/go", exist_ok=True)
os.chdir("/tmp/go")
with open("main.go", "w", encoding="utf-8") as f:
    f.write('package main\n\nimport "github.com/google/uuid"\n\nfunc main() { println("uuid", uuid.Nil.String()) }\n')
assert run("go", "mod", "init", "example.test/demo") == 0
assert run("go", "get", "github.com/google/uuid@latest") == 0
assert run("go", "run", ".") == 0

say("Somebody suggested this module instead. It is not on the list.")
assert run("go", "get", "github.com/gofrs/uuid@v4.4.0+incompatible") != 0

# --- Out ------------------------------------------------------------------
say("So I try to reach the world without the gateway.")
try:
    socket.create_connection(("192.0.2.1", 443), timeout=5)
    sys.exit("the sandbox leaks")
except OSError as err:
    print(f"[agent] no way out: {err}")

say("Why was I refused?")
subprocess.run(["cofferdam", "why"], check=True)
