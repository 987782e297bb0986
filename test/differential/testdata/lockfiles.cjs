// Reads lockfiles as npm and pnpm do. It reads a line of JSON for each, with a folder that has the file, and answers with
// one: an error, or what the client takes the file to hold.
"use strict"
const fs = require("node:fs")
const path = require("node:path")
const readline = require("node:readline")

const [modules] = process.argv.slice(2)
const Arborist = require(path.join(modules, "npm", "node_modules", "@npmcli/arborist"))

// npm: the tree that it takes from the file alone. A link is a folder of the project's own, or of the disk.
async function readNpm(dir) {
  const tree = await new Arborist({ path: dir }).loadVirtual()
  const entries = []
  for (const node of tree.inventory.values()) {
    if (node.isRoot || node.isProjectRoot || !node.location.includes("node_modules/")) continue // the project's
    const own = node.isLink
    entries.push({ name: node.packageName || node.name, installed: node.name, version: node.version || "", integrity: node.integrity || "", resolved: node.resolved || "", own, bundled: node.inBundle })
  }
  return entries
}

// pnpm: the packages of the project's document. Those of the tools before it are no project's.
async function readPnpm(dir) {
  const { readWantedLockfile } = require(path.join(modules, "@pnpm/lockfile.fs"))
  const { nameVerFromPkgSnapshot } = require(path.join(modules, "@pnpm/lockfile.utils"))
  const lock = await readWantedLockfile(dir, { ignoreIncompatible: false })
  const entries = []
  for (const [key, snapshot] of Object.entries((lock && lock.packages) || {})) {
    const { name, version, nonSemverVersion } = nameVerFromPkgSnapshot(key, snapshot)
    const { integrity = "", tarball = "", type = "" } = snapshot.resolution
    entries.push({ name, installed: name, version: nonSemverVersion ? "" : version, integrity, resolved: tarball || type, own: type === "directory" })
  }
  return entries
}

async function read({ tool, file }) {
  try {
    return { entries: await (tool === "pnpm" ? readPnpm : readNpm)(file) }
  } catch (err) {
    return { error: String((err && err.message) || err) || "it says nothing" }
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line)
    const answer = await read(order)
    fs.rmSync(order.file, { recursive: true, force: true })
    process.stdout.write(JSON.stringify(answer) + "\n")
  }
}
main()
