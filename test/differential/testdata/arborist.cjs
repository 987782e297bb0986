// Says which names npm asks a registry for when it installs a project. npm's own planner (Arborist) reads each project and plans its
// tree; what it would fetch is answered here, in the place of a registry, of git and of addresses. It reads a line of JSON for each, with
// the project's directory, and answers with one. Nothing is installed, and nothing is asked over a network. The planner has a thread of its
// own, since it does not come to an end with some projects (a root that bundles its dependencies, and overrides what these depend on).
"use strict"
const path = require("node:path")
const readline = require("node:readline")
const { Worker, isMainThread, parentPort } = require("node:worker_threads")

const [modules] = process.argv.slice(2)
const ofNpm = (name) => require(path.join(modules, "npm", "node_modules", name))
const Arborist = ofNpm("@npmcli/arborist")
const Registry = ofNpm("pacote/lib/registry.js")
const Git = ofNpm("pacote/lib/git.js")
const Remote = ofNpm("pacote/lib/remote.js")

let asked = new Set()

const versions = ["1.0.0", "1.2.3", "2.0.0", "2.3.4", "3.0.0-rc.1"]

// Each package wants the same two, which overrides may lead elsewhere.
function released(name, version) {
  const dependencies = name.startsWith("inner-") ? {} : { "inner-a": "^1.0.0", "inner-b": "*" }
  return { name, version, dependencies, dist: { tarball: `https://npm.example/${name}/-/x-${version}.tgz`, integrity: "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==" } }
}

Registry.prototype.packument = async function () {
  const { name } = this.spec
  asked.add(name)
  parentPort.postMessage({ asked: name })
  return { name, "dist-tags": { latest: "2.3.4", next: "3.0.0-rc.1" }, versions: Object.fromEntries(versions.map((v) => [v, released(name, v)])) }
}
for (const Fetcher of [Git, Remote]) {
  Fetcher.prototype.manifest = async function () {
    this.resolved = this.resolved || "https://files.example/x.tgz"
    return (this.package = { name: "from-elsewhere", version: "1.0.0", _resolved: this.resolved, _from: this.from, _id: "from-elsewhere@1.0.0" })
  }
}

async function read(dir) {
  asked = new Set()
  try {
    const plan = new Arborist({ path: dir, registry: "https://npm.example/", audit: false, packumentCache: new Map() }).buildIdealTree()
    await Promise.race([plan, new Promise((_, reject) => { fail = reject })])
    return { names: [...asked] }
  } catch (err) {
    return { names: [...asked], error: String((err && err.message) || err) || "it says nothing" }
  }
}

let fail = () => {}
if (!isMainThread) {
  for (const event of ["unhandledRejection", "uncaughtException"]) process.on(event, (err) => fail(err)) // it has some in no promise of its own
  parentPort.on("message", async (dir) => parentPort.postMessage(await read(dir)))
}

const patience = 30_000 // milliseconds
let planner

// plan has the planner read a project, and gives it up when that takes too long.
function plan(dir) {
  planner ??= new Worker(__filename, { argv: [modules] })
  const names = []
  return new Promise((done) => {
    const end = (answer) => {
      clearTimeout(timer)
      planner.removeAllListeners("message")
      done(answer)
    }
    const timer = setTimeout(() => {
      end({ names, error: "it does not come to an end" })
      planner.terminate()
      planner = undefined
    }, patience)
    planner.on("message", (said) => (said.asked ? names.push(said.asked) : end(said)))
    planner.postMessage(dir)
  })
}

async function main() {
  const lines = readline.createInterface({ input: process.stdin })
  lines.on("close", () => process.exit()) // whatever the planner does
  for await (const line of lines) {
    process.stdout.write(JSON.stringify(await plan(JSON.parse(line).file)) + "\n")
  }
}
if (isMainThread) main()
