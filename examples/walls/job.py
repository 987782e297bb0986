"""One job for any engine: what is allowed works, what is not is refused, and nothing leads out.

    cofferdam run --isolation auto --policy examples/walls/policy.yaml -- python3 - < examples/walls/job.py
"""

import os
import pathlib
import socket
import subprocess
import sys


def pip(*names: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "install", "--quiet", *names]
    return subprocess.run(command, capture_output=True, text=True)


def way_out() -> str:
    try:
        socket.create_connection(("192.0.2.1", 443), timeout=5)
    except OSError as error:
        return f"none ({error.strerror})"
    return "found"


allowed, refused = pip("iniconfig"), pip("attrs")
note = pathlib.Path.home() / "note.txt"
note.write_text("kept while the sandbox lives\n")

print("allowed package:", "installed" if allowed.returncode == 0 else allowed.stderr)
print("other package:", "refused" if refused.returncode != 0 else "installed")
print("way out:", way_out())
print("user:", os.getuid() != 0 and "not root" or "root")
print("file:", note.read_text().strip())
print("kernel:", os.uname().version)

sys.exit(0 if allowed.returncode == 0 and refused.returncode != 0 else 1)
