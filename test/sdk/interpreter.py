"""What a user of the code interpreter's Python SDK does, with its synchronous half and then
the asynchronous one. The SDK's own variables say where the daemon is. Each line that is
printed is a thing that worked."""

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time

from e2b import NotFoundException, SandboxException, TimeoutException
from e2b_code_interpreter import AsyncSandbox, Sandbox
from e2b_code_interpreter.charts import BarChart, BoxAndWhiskerChart, LineChart, PieChart, ScatterChart, SuperChart


def ok(name):
    print("ok " + name, flush=True)


def raises(kind, text, call, *args, **kwargs):
    try:
        got = call(*args, **kwargs)
    except kind as err:
        assert text in str(err), str(err)
        return
    raise AssertionError(f"it worked: {got}")


def results():
    r = box.run_code("1 + 1")
    assert r.text == "2" and r.error is None and r.execution_count == 1 and r.results[0].is_main_result, r
    assert box.run_code("x = 41").results == []
    assert box.run_code("x + 1").text == "42"
    assert box.run_code("'a string'").text == "a string"
    assert box.run_code("import asyncio; await asyncio.sleep(0); x").text == "41"
    ok("results, and what cells leave for the next")

    r = box.run_code("import os, sys; print('out'); print('err', file=sys.stderr); os.system('echo child')")
    assert r.logs.stdout == ["child\n", "out\n"] or "".join(sorted(r.logs.stdout)) == "child\nout\n", r
    assert r.logs.stderr == ["err\n"], r
    seen = []
    box.run_code("import time\nfor i in range(3):\n  print(i); time.sleep(0.2)", on_stdout=lambda m: seen.append((m.line, m.timestamp)))
    assert [line for line, _ in seen] == ["0\n", "1\n", "2\n"] and seen[0][1] < seen[1][1] < seen[2][1], seen
    failed, shown = [], []
    r = box.run_code("1 / 0", on_error=failed.append, on_result=shown.append)
    assert r.error.name == "ZeroDivisionError" and r.error.value == "division by zero" and "1 / 0" in plain(r.error.traceback), r.error
    assert len(failed) == 1 and not shown
    assert box.run_code("no python at all").error.name == "SyntaxError"
    assert box.run_code("y").error.value == "name 'y' is not defined"
    assert box.run_code("input()").error.name == "StdinNotImplementedError"
    ok("output as it comes, and errors")

    r = box.run_code("from IPython.display import display, HTML, Markdown, SVG, JSON, Latex, Javascript\ndisplay(HTML('<b>h</b>'), Markdown('*m*'), JSON({'a': [1]}), Latex('$l$'), Javascript('j'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>'))\ndisplay({'text/latex': 'raw', 'x/own': {'k': 1}}, raw=True)")
    assert r.error is None and not any(one.is_main_result for one in r.results), r
    assert [r.results[i].formats()[-1] for i in range(6)] == ["html", "markdown", "json", "latex", "javascript", "svg"], [one.formats() for one in r.results]
    assert r.results[6].latex == "raw" and r.results[6].extra == {"x/own": {"k": 1}}
    r = box.run_code("import pandas as pd; pd.DataFrame({'a': [1, 2, 3], 'b': [0.5, None, 'x']})")
    assert r.results[0].data == {"a": [1, 2, 3], "b": [0.5, None, "x"]} and "<table" in r.results[0].html, r.results[0]
    ok("rich results")

    r = box.run_code("from PIL import Image; image = Image.new('RGBA', (4, 4)); image.show(); image")
    assert r.error is None and [png(one) for one in r.results] == [b"PNG", b"PNG"], r
    r = box.run_code("image.save('/tmp/saved.png'); image.save('/tmp/again.png')")
    assert [png(one) for one in r.results] == [b"PNG", b"PNG"], r
    assert box.run_code("import io; image.save(io.BytesIO(), 'PNG')").results == []
    assert box.run_code("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('/tmp/drawn.png'); plt.close()").results == []
    # A letter that no font has is drawn as a box, with a warning.
    r = box.run_code("plt.title('漢字 かな 한글 😀'); plt.savefig('/tmp/letters.png'); plt.close()")
    assert r.error is None and not r.logs.stderr, r
    r = box.run_code("plt.title('\\U0001FAE9'); plt.savefig('/tmp/letters.png'); plt.close()")
    assert "missing from" in "".join(r.logs.stderr), r
    ok("images, and those that a cell saves")


def charts():
    def draw(code):
        r = box.run_code("import matplotlib.pyplot as plt\n" + code + "\nplt.show()")
        assert r.error is None and base64.b64decode(r.results[0].png)[1:4] == b"PNG", r
        return r.results[0].chart

    bar = draw("plt.bar(['a', 'b'], [1, 2]); plt.xlabel('Name'); plt.ylabel('Size (m)'); plt.title('T')")
    assert isinstance(bar, BarChart) and [(b.label, b.value) for b in bar.elements] == [("a", 1), ("b", 2)] and bar.y_unit == "m" and bar.title == "T"
    line = draw("import datetime\nplt.plot([datetime.date(2023, 9, 1), datetime.date(2023, 9, 2)], [1, 2], label='l')")
    assert isinstance(line, LineChart) and line.x_scale == "datetime" and line.elements[0].points[0] == ("2023-09-01", 1) and line.elements[0].label == "l"
    pie = draw("plt.pie([90, 10], labels=['no', 'yes'])")
    assert isinstance(pie, PieChart) and [(e.label, e.angle) for e in pie.elements] == [("no", 324), ("yes", 36)]
    boxes = draw("plt.boxplot([[85, 90, 78, 92, 88], [95, 89, 76, 91, 84, 87]], tick_labels=['A', 'B'], patch_artist=True)")
    assert isinstance(boxes, BoxAndWhiskerChart) and boxes.elements[1].outliers == [76] and boxes.elements[0].median == 88 and boxes.elements[0].label == "A"
    two = draw("f, axs = plt.subplots(1, 2); f.suptitle('S'); axs[0].plot([1, 2]); axs[1].scatter([1, 2], [3, 4]); axs[1].grid()")
    assert isinstance(two, SuperChart) and two.title == "S" and isinstance(two.elements[0], LineChart) and isinstance(two.elements[1], ScatterChart)
    empty = draw("plt.figure(); plt.gca().xaxis_date()")
    assert isinstance(empty, LineChart) and empty.elements == [] and empty.x_scale == "datetime", empty
    unknown = draw("plt.gca().add_artist(plt.Circle((0, 0), 1)); plt.title('C')")
    assert unknown.type == "unknown" and unknown.title == "C" and unknown.elements == []
    ok("charts")


def contexts():
    languages = [c.language for c in box.list_code_contexts()]
    assert "python" in languages and "javascript" in languages, languages
    one, other = box.create_code_context(), box.create_code_context(cwd="/tmp", language="python")
    assert box.list_code_contexts()[-1].id == other.id and other.cwd == "/tmp"
    box.run_code("x = 'mine'", context=one)
    assert box.run_code("x", context=other).error.name == "NameError"
    assert box.run_code("import os; os.getcwd()", context=other).text == "/tmp" and box.run_code("os.getcwd()").text == "/home/user"
    box.restart_code_context(one)
    assert box.run_code("x", context=one).error.name == "NameError"
    box.remove_code_context(one)
    raises(NotFoundException, "no context", box.run_code, "1", context=one)
    raises(NotFoundException, "no context", box.remove_code_context, "ctx-none")
    raises(SandboxException, "400", box.create_code_context, language="cobol")
    raises(SandboxException, "400", box.create_code_context, cwd="/no/such/place")
    roots = box.create_code_context(cwd="/root")
    assert box.run_code("import os; os.getcwd()", context=roots).text == "/root"
    assert box.run_code("os.listdir('.')", context=roots).error.name == "PermissionError"
    box.remove_code_context(roots)
    ok("contexts")

    get = "import os; os.getenv('FOO')"
    assert box.run_code(get, envs={"FOO": "bar"}).text == "bar" and box.run_code(get).text is None
    assert box.run_code("os.getenv('MADE')").text == "with it"
    assert box.run_code("import sys; sys.prefix == os.environ['VIRTUAL_ENV'], os.environ['E2B_SANDBOX_ID'], 'COFFERDAM_RUN' in os.environ").text == f"(True, '{box.sandbox_id}', True)"
    assert box.run_code("echo $FOO", envs={"FOO": "bar"}, language="bash").logs.stdout == ["bar\n"]
    assert box.run_code("echo ${FOO:-none}", language="bash").logs.stdout == ["none\n"]
    assert box.run_code("process.env.FOO", envs={"FOO": "bar"}, language="js").text == "bar"
    ok("variables")

    assert box.run_code("const a = (x, y) => x + y;\na(1, 2)", language="js").text == "3"
    assert box.run_code("const a = 5; await Promise.resolve('again')", language="javascript").text == "again"
    assert box.run_code("import fs from 'node:fs'\ntypeof fs.readFileSync", language="js").text == "function"
    assert box.run_code("console.log('hi')", language="js").logs.stdout == ["hi\n"]
    assert box.run_code("throw new TypeError('bad')", language="js").error.name == "TypeError"
    assert box.run_code("enum E { A = 3 }\nconst f = (n: number): number => n + E.A;\nf(1)", language="ts").text == "4"
    box.run_code("cd /tmp; X=1", language="bash")
    r = box.run_code("pwd; echo $X >&2; exit_with() { return 3; }; exit_with", language="bash")
    assert r.logs.stdout == ["/tmp\n"] and r.logs.stderr == ["1\n"] and r.error.value == "exit status 3", r
    ok("other languages")

    r = box.run_code("x <- c(1, 2, NA)\nx\nmean(x, na.rm = TRUE)", language="r")
    assert [(one.text, one.is_main_result) for one in r.results] == [("[1]  1  2 NA", False), ("[1] 1.5", True)] and r.execution_count == 1, r
    r = box.run_code("cat('out\\n'); message('err'); invisible(x)", language="r")
    assert r.logs.stdout == ["out\n"] and r.logs.stderr == ["err\n"] and r.results == [], r
    r = box.run_code("f <- function() stop('bad'); f()", language="r")
    assert r.error.name == "simpleError" and r.error.value == "bad" and "f()" in r.error.traceback, r.error
    r = box.run_code("plot(1:3); hist(c(1, 1, 2))", language="r")
    assert r.error is None and [png(one) for one in r.results] == [b"PNG", b"PNG"], r
    assert box.run_code("Sys.getenv('FOO')", envs={"FOO": "bar"}, language="r").text == '[1] "bar"'
    assert box.run_code("Sys.getenv('FOO', 'none')", language="r").text == '[1] "none"'
    raises(TimeoutException, "timed out", box.run_code, "repeat {}", language="r", timeout=2)
    assert box.run_code("x[2]", language="r", timeout=30).text == "[1] 2"
    assert box.run_code("quit('no')", language="r").error.name == "KernelDied"
    assert box.run_code("exists('x')", language="r").text == "[1] FALSE"
    ok("R")


def odd_cells():
    """A cell in which there is nothing to do ends at once, and what the context has stays."""
    for language, keep, show, comment in [
        ("python", "odd = 5", "print(odd)", "# "),
        ("js", "odd = 5", "console.log(odd)", "// "),
        ("ts", "odd = 5", "console.log(odd)", "// "),
        ("bash", "odd=5", "echo $odd", "# "),
        ("r", "odd <- 5", "cat(odd, fill = TRUE)", "# "),
    ]:
        assert box.run_code(keep, language=language).error is None, language
        for code in ["", "  \n\t\n", comment + "x", comment + "x" * ((1 << 20) - len(comment))]:
            r = box.run_code(code, language=language, timeout=20)
            assert r.error is None and r.results == [] and r.logs.stdout == [] == r.logs.stderr, (language, code[:20], r)
            assert box.run_code(show, language=language, timeout=20).logs.stdout == ["5\n"], (language, code[:20])
        broken = box.run_code("x = = (", language=language).error
        assert broken and all("data:" not in line and len(line) < 2000 for line in broken.traceback.splitlines()), (language, broken)
    ok("cells that are empty, blank, a comment, or as long as they may be")


def interrupts():
    for language, code, after, want in [
        ("python", "import time\nkept = 1\ntime.sleep(60)", "kept", "1"),
        ("python", "import asyncio\nawait asyncio.sleep(60)", "kept", "1"),
        ("python", "while True: print('x' * 100)", "kept", "1"),
        ("js", "while (true) {}", "a", "5"),
        ("js", "await new Promise(() => {})", "a", "5"),
    ]:
        raises(TimeoutException, "timed out", box.run_code, code, language=language, timeout=2)
        assert box.run_code(after, language=language, timeout=30).text == want, code
    raises(TimeoutException, "timed out", box.run_code, "sleep 60", language="bash", timeout=2)
    assert box.run_code("echo $X", language="bash", timeout=30).logs.stdout == ["1\n"]
    ok("a timeout interrupts, and the state stays")

    r = box.run_code("print('x' * (40 << 20))")
    assert r.error.name == "OutputLimit", r.error
    assert box.run_code("kept").text == "1"
    r = box.run_code("import os; os._exit(3)")
    assert r.error.name == "KernelDied" and "exit code 3" in r.error.value, r.error
    assert box.run_code("kept").error.name == "NameError"
    r = box.run_code("import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'no message at all\\n')\n  except OSError: pass")
    assert r.error.name in ("KernelBroken", "KernelDied"), r.error
    assert box.run_code("1 + 1").text == "2"
    raises(SandboxException, "400", box.run_code, "x" * ((1 << 20) + 1))
    ok("kernels that die, flood or lie harm nothing else")


def installs():
    r = box.run_code("!pip install --quiet iniconfig==2.0.0\nimport iniconfig; iniconfig.__name__")
    assert r.text == "iniconfig" and r.error is None, r
    for code in ("!pip install colorama", "%pip install colorama"):
        r = box.run_code(code)
        assert "Blocked by cofferdam" in "".join(r.logs.stdout + r.logs.stderr), r
    ok("installs in a cell, by the policy")


def copies():
    box = Sandbox.create(timeout=300)
    box.run_code("x = 5")
    other = box.create_code_context(cwd="/tmp")
    box.run_code("x = 7", context=other)
    kept = box.create_snapshot()
    copy = Sandbox.create(kept.snapshot_id, timeout=300)
    box.run_code("x = 50")
    assert (copy.run_code("x").text, copy.run_code("x", context=other).text, box.run_code("x").text) == ("5", "7", "50")
    assert copy.commands.list() == []
    copy.kill()
    box.kill()
    Sandbox.delete_snapshot(kept.snapshot_id)
    ok("a copy goes on with the contexts of its source")


def holds():
    box = Sandbox.create(metadata={"policy": "waits"}, timeout=300)
    box.run_code("x = 5")
    r = box.run_code("y = 6\n!pip install --quiet iniconfig==2.0.0\nimport iniconfig; z = iniconfig.__name__")
    assert r.error.name == "PendingApproval" and "iniconfig" in r.error.value, r
    request = re.search(r"request (ap-\w+)", r.error.value)[1]
    for _ in range(600):
        if "PAUSED" in str(box.get_info().state).upper():
            break
        time.sleep(0.1)
    raises(SandboxException, request, box.run_code, "x")
    listed = subprocess.run([os.environ["COFFERDAM"], "approvals", "list", "--json"], check=True, capture_output=True)
    shown = next(r["answer_id"] for r in json.loads(listed.stdout) if r["id"] == request)
    subprocess.run([os.environ["COFFERDAM"], "approvals", "approve", "--scope", "run", shown], check=True, capture_output=True)
    r = box.run_code("(x, y, z)")
    assert r.text == "(5, 6, 'iniconfig')", r
    box.kill()
    ok("a cell whose install waits for a person goes on when that is answered")


def rules():
    box = Sandbox.create(metadata={"policy": "research"}, timeout=300)
    r = box.run_code("import subprocess")
    assert r.error.name == "PolicyRefusal" and "shell-out blocked by research-agent policy" in r.error.value and "deny-shell-out" in r.error.value, r.error
    r = box.run_code("getattr(__import__('o' + 's'), 'system')('true')")
    assert r.error.name == "PolicyRefusal" and "no hidden imports" in r.error.value, r.error
    assert box.run_code("2 + 2").text == "4"
    box.kill()
    ok("rules on code and on findings")


def scanning():
    box = Sandbox.create(metadata={"policy": "scanned"}, timeout=300)
    text = r"first\n4242424242424242\n\t536-22-8726\nada@mail.host.org\nlast"
    want = "first\n" + "*" * 16 + "\n\t" + "*" * 11 + "\n" + "*" * 17 + "\nlast\n"
    for language, code in [("python", f"print('{text}')"), ("js", f"console.log('{text}')"), ("bash", f"printf '{text}\\n'"), ("r", f"cat('{text}\\n')")]:
        r = box.run_code(code, language=language)
        assert r.error is None and "".join(r.logs.stdout) == want, (language, r)
    box.kill()
    ok("what a policy scans for is found at the beginning of a line, too")


async def run_async():
    box = await AsyncSandbox.create(timeout=300)
    lines = []

    async def take(message):
        lines.append(message.line)

    r = await box.run_code("print('a'); 6 * 7", on_stdout=take)
    assert r.text == "42" and lines == ["a\n"]
    c = await box.create_code_context(language="js")
    both = await asyncio.gather(box.run_code("1 + 1", context=c), box.run_code("2 + 2"))
    assert [r.text for r in both] == ["2", "4"]
    await box.restart_code_context(c)
    await box.remove_code_context(c.id)
    running = asyncio.create_task(box.run_code("import time; time.sleep(60)"))
    await asyncio.sleep(1)
    await box.kill()
    try:
        await running
        raise AssertionError("it ended well")
    except (TimeoutException, SandboxException) as err:
        print("# the end of a cell of a killed sandbox:", type(err).__name__, str(err)[:80])
    ok("asynchronously")


def png(result):
    return base64.b64decode(result.png or "")[1:4]


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


box = Sandbox.create(timeout=600, envs={"MADE": "with it"}, metadata={"policy": "cells"})
for part in (results, charts, contexts, odd_cells, interrupts, installs):
    part()
box.kill()
copies()
holds()
rules()
scanning()
asyncio.run(run_async())

# The newest SDK's HTTP library has threads of its own, beside which an interpreter
# was seen to abort when it ended after all had worked.
sys.stdout.flush()
os._exit(0)
