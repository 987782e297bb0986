// The kernel of a context for JavaScript and TypeScript: V8's own evaluation of a prompt, in
// which a name can be declared again and await stands at the top. Messages are those of
// kernel.py; they go to descriptor 3.
import fs from "node:fs";
import inspector from "node:inspector";
import module, { createRequire, builtinModules } from "node:module";
import path from "node:path";
import { spawnSync } from "node:child_process";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { Worker } from "node:worker_threads";

const typescript = process.env.COFFERDAM_LANGUAGE === "typescript";
delete process.env.COFFERDAM_LANGUAGE;
let cell, finish, count = 0;
const shared = new Int32Array(new SharedArrayBuffer(8));

// A message with a divider behind each control character: see unmark in lines.go.
const marked = (text) => text.replace(/\\(?:([bfnrt]|u00[01].)|.)/g, (found, control) => (control ? found + "\x7f" : found));

function send(kind, fields = {}) {
  const text = marked(JSON.stringify({ kind, ...(cell === undefined ? {} : { cell }), ...fields })) + "\n";
  const data = Buffer.from(text);
  for (let at = 0; at < data.length; ) {
    try {
      at += fs.writeSync(3, data, at);
    } catch (err) {
      if (err.code !== "EAGAIN") throw err;
    }
  }
}

// What the cell's own console and streams write.
for (const kind of ["stdout", "stderr"]) {
  process[kind].write = (chunk, encoding, done) => {
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    for (let at = 0; at < text.length; at += 32768) send(kind, { text: text.slice(at, at + 32768) });
    if (typeof encoding === "function") done = encoding;
    if (done) process.nextTick(done);
    return true;
  };
}

const session = new inspector.Session();
session.connect();
const post = (method, params) =>
  new Promise((resolve) => session.post(method, params, (err, result) => resolve(err ? { err } : result)));

// Modules are found from the working directory, as a file there would find them.
const here = () => createRequire(path.join(process.cwd(), "cell.js"));
globalThis.require = (name) => here()(name);
globalThis.__cofferdam_import = (name) => load(String(name)).catch((err) => {
  for (const part of ["message", "stack"]) // they name who imports, by the address that is all of this text
    if (typeof err?.[part] === "string" && err[part].includes(import.meta.url)) err[part] = err[part].replaceAll(import.meta.url, "a cell");
  throw err;
});

async function load(name) {
  const wanted = name.replace(/^npm:/, "");
  if (builtinModules.includes(wanted) || wanted.startsWith("node:")) return import(wanted);
  if (/^(data|file):/.test(wanted)) return import(wanted);
  if (wanted.startsWith(".") || wanted.startsWith("/")) return import(pathToFileURL(path.resolve(wanted)));
  try {
    return await import(pathToFileURL(here().resolve(wanted)));
  } catch (err) {
    if (name === wanted || err.code !== "MODULE_NOT_FOUND") throw err;
  }
  // npm:NAME asks for it to be installed, which the policy decides as everywhere.
  const done = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", wanted], { encoding: "utf8" });
  if (done.status !== 0) {
    process.stderr.write(`${done.stderr}${done.stdout}`);
    const said = done.stderr.split("\n").filter((line) => /\S/.test(line)).slice(0, 3).join(" ");
    throw new Error(`npm install ${wanted} failed: ${said}`);
  }
  const bare = wanted.replace(/(?!^)@[^/]*$/, "");
  return import(pathToFileURL(here().resolve(bare)));
}

// Imports at the beginning of a line become what a prompt can do.
function rewrite(code) {
  const names = (list) => list.replace(/\btype\s+\w+\s*,?/g, "").replace(/\s+as\s+/g, ": ");
  const rules = [
    [/^([ \t]*)import\s+(["'][^"'\n]+["'])[ \t]*;?/gm, (_, indent, from) => `${indent}await __cofferdam_import(${from});`],
    [/^([ \t]*)import\s+([\w$]+\s*,\s*)?\{([^}]*)\}\s*from\s*(["'][^"'\n]+["'])[ \t]*;?/gm, (_, indent, first, list, from) =>
      `${indent}const {${first ? `default: ${first.replace(",", "").trim()}, ` : ""}${names(list)}} = await __cofferdam_import(${from});`],
    [/^([ \t]*)import\s+(?:([\w$]+)\s*,\s*)?\*\s*as\s+([\w$]+)\s+from\s*(["'][^"'\n]+["'])[ \t]*;?/gm, (_, indent, first, all, from) =>
      `${indent}const ${all} = await __cofferdam_import(${from});${first ? ` const ${first} = ${all}.default;` : ""}`],
    [/^([ \t]*)import\s+([\w$]+)\s+from\s*(["'][^"'\n]+["'])[ \t]*;?/gm, (_, indent, name, from) => `${indent}const {default: ${name}} = await __cofferdam_import(${from});`],
    [/(?<![\w$.])import\s*\(/g, () => "__cofferdam_import("],
  ];
  for (const [pattern, by] of rules) {
    if (code.search(pattern) < 0) continue;
    const text = textsOf(code);
    code = code.replace(pattern, (...found) => (text[found.at(-2) + found[0].indexOf("import")] ? found[0] : by(...found)));
  }
  return code;
}

// What of a cell is no code, by its place: strings, templates but for what they evaluate,
// expressions between slashes, comments.
function textsOf(code) {
  const text = new Uint8Array(code.length);
  const open = []; // the braces around a place; true: it is one of a template
  const word = /[\w$]+|\s+/y;
  let before = ""; // the last word or sign of code
  for (let at = 0; at < code.length; ) {
    word.lastIndex = at;
    const sign = code[at];
    const template = sign === "`" || (sign === "}" && open.at(-1));
    if (sign === "{") open.push(false);
    if (sign === "}") open.pop();
    let end = at;
    if (template) {
      end = endOf(code, at + 1, (i) => code[i] === "`" || code.startsWith("${", i));
      if (code[end] === "$") open.push(true), end++;
    } else if (sign === '"' || sign === "'") end = endOf(code, at + 1, (i) => code[i] === sign || code[i] === "\n");
    else if (code.startsWith("//", at)) end = endOf(code, at, (i) => code[i + 1] === "\n", false);
    else if (code.startsWith("/*", at)) end = endOf(code, at + 2, (i) => code.startsWith("*/", i), false) + 1;
    else if (sign === "/" && beginsExpression(before)) {
      let listed = false;
      end = endOf(code, at + 1, (i) => (code[i] === "[" ? (listed = true) : code[i] === "]" && (listed = false), code[i] === "\n" || (code[i] === "/" && !listed)));
    } else {
      const found = word.exec(code)?.[0] ?? sign;
      if (/\S/.test(found)) before = found;
      at += found.length;
      continue;
    }
    if (!code.startsWith("/*", at) && !code.startsWith("//", at)) before = code[end] === "{" ? "{" : ")";
    text.fill(1, at, end + 1);
    at = end + 1;
  }
  return text;
}

// The place at which something ends, or the code does.
function endOf(code, at, ends, escapes = true) {
  while (at < code.length && !ends(at)) at += escapes && code[at] === "\\" ? 2 : 1;
  return at;
}

// Tells whether a slash behind a word or sign begins an expression, and divides nothing.
const beginsExpression = (before) =>
  /^(?:[^\w$)\]}]?|return|typeof|case|in|of|delete|void|throw|new|do|else|instanceof|yield|await)$/.test(before);

// The value of an evaluation, which may be one that only V8 has.
async function valueOf(result) {
  if (!result.objectId) {
    if (result.unserializableValue === undefined) return result.value;
    const text = result.unserializableValue;
    return text.endsWith("n") ? BigInt(text.slice(0, -1)) : text === "-0" ? -0 : Number(text);
  }
  await post("Runtime.callFunctionOn", { objectId: result.objectId, functionDeclaration: "function () { globalThis.__cofferdam_last = this; }" });
  const value = globalThis.__cofferdam_last;
  delete globalThis.__cofferdam_last;
  await post("Runtime.releaseObject", { objectId: result.objectId });
  return value;
}

async function show(result) {
  if (result.type === "undefined") return;
  const value = await valueOf(result);
  const display = value?.[Symbol.for("Jupyter.display")];
  let data;
  if (typeof display === "function") data = await display.call(value);
  if (data === null || typeof data !== "object") data = { "text/plain": typeof value === "string" ? value : inspect(value) };
  send("result", { main: true, data });
}

function failure(details) {
  const e = details.exception ?? {};
  const text = e.description ?? (e.value !== undefined ? String(e.value) : details.text);
  const first = text.split("\n")[0];
  const at = first.indexOf(":");
  const name = e.className ?? (at > 0 ? first.slice(0, at) : "Error");
  return { name, value: at > 0 && first.startsWith(name) ? first.slice(at + 1).trim() : first, traceback: withoutOurs(text) };
}

// A stack without the frames of this program, which its last line names: it is no file, and the
// address that it was loaded from is all of its text.
function withoutOurs(stack) {
  const own = stack.indexOf("\n    at Session.post"); // from here on all frames are ours
  return (own > 0 ? stack.slice(0, own) : stack).replace(/\n    at [^\n]*\bcofferdam-kernel\.mjs:[^\n]*/g, "");
}

const interrupted = () => ({ name: "KeyboardInterrupt", value: "the cell was interrupted", traceback: "" });

async function evaluate(code) {
  if (typescript) code = module.stripTypeScriptTypes(code, { mode: "transform" });
  code = rewrite(code);
  // What looks like a block and is an object is meant as an object, as at Node's prompt.
  if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
    const { exceptionDetails } = await post("Runtime.compileScript", { expression: `(${code}\n)`, sourceURL: "", persistScript: false });
    if (!exceptionDetails) code = `(${code}\n)`;
  }
  const done = await post("Runtime.evaluate", { expression: code, replMode: true, awaitPromise: true, userGesture: false, throwOnSideEffect: false });
  if (Atomics.exchange(shared, 1, 0)) return interrupted();
  if (done.err) return { name: "Error", value: done.err.message ?? String(done.err), traceback: "" };
  if (done.exceptionDetails) return failure(done.exceptionDetails);
  await show(done.result);
}

async function run(request) {
  cell = request.cell;
  count++;
  send("begin");
  const env = request.env ?? {};
  const before = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  Object.assign(process.env, env);
  const stopped = new Promise((resolve) => (finish = () => resolve(interrupted())));
  let broke;
  try {
    broke = await Promise.race([evaluate(request.code ?? ""), stopped]);
  } catch (err) {
    broke = { name: err?.name ?? "Error", value: err?.message ?? String(err), traceback: withoutOurs(err?.stack ?? "") };
  }
  finish = undefined;
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  if (broke) send("error", broke);
  send("done", { count });
  cell = undefined;
  tellIdle();
}

let asked = false; // to say when no cell runs
function tellIdle() {
  if (!asked || cell !== undefined) return;
  asked = false;
  send("ready");
}

function failed(err) {
  process.stderr.write(`Uncaught ${inspect(err)}\n`);
}
process.on("uncaughtException", failed);
process.on("unhandledRejection", failed);
process.on("SIGINT", () => {}); // it is for the programs that a cell started

// Requests are read by a thread, which can end a cell that never waits. V8 may be told to end
// only what it runs: so the thread asks first, by shared[0], whether this one hears it.
const reader = new Worker(
  `const { parentPort, workerData: shared } = require("node:worker_threads");
   const inspector = require("node:inspector"), fs = require("node:fs");
   const session = new inspector.Session();
   session.connectToMainThread();
   let pending = Buffer.alloc(0);
   const chunk = Buffer.alloc(1 << 16);
   for (;;) {
     let n;
     try { n = fs.readSync(0, chunk); } catch (err) { if (err.code === "EAGAIN") { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5); continue; } throw err; }
     if (!n) { parentPort.postMessage({ op: "end" }); break; }
     pending = Buffer.concat([pending, chunk.subarray(0, n)]);
     for (let at; (at = pending.indexOf(10)) >= 0; pending = pending.subarray(at + 1)) {
       const request = JSON.parse(pending.subarray(0, at).toString());
       if (request.op === "interrupt") Atomics.store(shared, 0, 1);
       parentPort.postMessage(request);
       if (request.op === "interrupt" && Atomics.wait(shared, 0, 1, 300) === "timed-out") {
         Atomics.store(shared, 1, 1);
         session.post("Runtime.terminateExecution");
       }
     }
   }`,
  { eval: true, workerData: shared },
);
reader.on("message", (request) => {
  switch (request.op) {
    case "run":
      run(request);
      break;
    case "begin":
      Object.assign(process.env, request.env ?? {});
      try {
        if (request.dir) process.chdir(request.dir);
      } catch {}
      break;
    case "idle":
      asked = true;
      tellIdle();
      break;
    case "interrupt":
      Atomics.store(shared, 0, 0);
      Atomics.notify(shared, 0);
      finish?.();
      break;
    case "end":
      process.exit(0);
  }
});
send("ready");
//# sourceURL=cofferdam-kernel.mjs
