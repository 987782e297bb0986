"""What cells do in the sandboxes of one engine, which the policy that is the argument asks for.
Each line that is printed is a thing that worked."""

import base64
import os
import sys

from e2b import TimeoutException
from e2b_code_interpreter import Sandbox

policy = sys.argv[1]
box = Sandbox.create(timeout=900, metadata={"policy": policy})


def said(cell):
    return "".join(cell.logs.stdout + cell.logs.stderr)


box.run_code("x = 41")
assert box.run_code("x + 1").text == "42"
assert box.run_code("1 / 0").error.name == "ZeroDivisionError"
for language, code in (("js", "6 * 7"), ("ts", "const n: number = 42; n"), ("r", "6 * 7")):
    assert box.run_code(code, language=language).text in ("42", "[1] 42"), language
assert said(box.run_code("echo $((6 * 7))", language="bash")) == "42\n"
print("ok cells in five languages, by", policy, flush=True)

r = box.run_code("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
assert r.results[0].data == {"a": [1, 2]} and "<table" in r.results[0].html, r
r = box.run_code("import matplotlib.pyplot as plt; _ = plt.plot([1, 2]); plt.show()")
assert base64.b64decode(r.results[0].png)[1:4] == b"PNG" and r.results[0].chart, r
print("ok frames and figures, by", policy, flush=True)

r = box.run_code("!pip install --quiet iniconfig==2.0.0\nimport iniconfig; iniconfig.__name__")
assert r.text == "iniconfig" and r.error is None, r
assert "Blocked by cofferdam" in said(box.run_code("%pip install colorama"))
print("ok installs by the policy, by", policy, flush=True)

try:
    box.run_code("import time; time.sleep(900)", timeout=2)
    raise AssertionError("it ended")
except TimeoutException:
    pass
assert box.run_code("x").text == "41"
other = box.create_code_context(cwd="/tmp")
assert box.run_code("import os; os.getcwd()", context=other).text == "/tmp"
box.run_code("import os; os.kill(os.getpid(), 9)", context=other)
assert box.run_code("x").text == "41"
print("ok a cell that hangs and a kernel that dies, by", policy, flush=True)

box.kill()
sys.stdout.flush()
os._exit(0)  # as in interpreter.py
