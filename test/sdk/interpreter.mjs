// What a user of the code interpreter's JavaScript SDK does. Each line that is printed is a
// thing that worked.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(path.join(process.env.SDK_DIR, "package.json"));
const { Sandbox, TimeoutError, NotFoundError } = require("@e2b/code-interpreter");
const ok = (name) => console.log("ok " + name);

const box = await Sandbox.create({ timeoutMs: 600_000 });
let r = await box.runCode("1 + 1");
assert.equal(r.text, "2");
assert.equal(r.executionCount, 1);
await box.runCode("x = 20");
assert.equal((await box.runCode("x + 1")).text, "21");
ok("results, and what cells leave for the next");

const lines = [];
r = await box.runCode("import sys\nprint('a'); print('b', file=sys.stderr)", { onStdout: (m) => lines.push(m.line), onStderr: (m) => lines.push("! " + m.line) });
assert.deepEqual([...lines].sort(), ["! b\n", "a\n"]);
let told;
r = await box.runCode("1 / 0", { onError: (e) => (told = e.name) });
assert.equal(r.error.name, "ZeroDivisionError");
assert.equal(told, "ZeroDivisionError");
ok("callbacks and errors");

r = await box.runCode("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3], [2, 4, 8], label='l'); plt.title('T'); plt.show()");
assert.equal(r.results[0].chart.type, "line");
assert.equal(r.results[0].chart.title, "T");
assert.deepEqual(r.results[0].chart.elements[0].points[2], [3, 8]);
assert.ok(r.results[0].png.length > 100);
ok("charts");

assert.equal((await box.runCode("import os; os.getenv('FOO')", { envs: { FOO: "bar" } })).text, "bar");
const context = await box.createCodeContext({ language: "js", cwd: "/tmp" });
assert.equal((await box.runCode("process.cwd()", { context })).text, "/tmp");
await box.restartCodeContext(context);
assert.ok((await box.listCodeContexts()).some((c) => c.id === context.id && c.cwd === "/tmp"));
await box.removeCodeContext(context);
await assert.rejects(box.runCode("1", { context }), NotFoundError);
ok("contexts and variables");

await assert.rejects(box.runCode("import time; time.sleep(60)", { timeoutMs: 2_000 }), TimeoutError);
assert.equal((await box.runCode("x")).text, "20");
ok("a timeout interrupts, and the state stays");

await box.kill();
await assert.rejects(box.runCode("1"), TimeoutError);
ok("a killed sandbox");
process.exit(0);
