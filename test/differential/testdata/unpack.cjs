// Unpacks archives as npm, pnpm and yarn do. It reads a line of JSON for each
// and answers with one: an error, and what npm would run of what has landed.
"use strict"
const { execFile } = require("node:child_process")
const fs = require("node:fs")
const path = require("node:path")
const readline = require("node:readline")
const { promisify } = require("node:util")

const [modules] = process.argv.slice(2)
const ofNpm = name => require(path.join(modules, "npm", "node_modules", name))
const pacote = ofNpm("pacote")
const Arborist = ofNpm("@npmcli/arborist")
const { isNodeGypPackage } = ofNpm("@npmcli/node-gyp")
const { addFilesFromTarball } = require(path.join(modules, "@pnpm/store.cafs/lib/addFilesFromTarball.js"))

// npm: what an install calls for a tarball. It warns and goes on.
async function unpackNpm(file, dest) {
  await pacote.extract("file:" + file, dest, { cache: path.join(path.dirname(file), "cache"), preferOffline: true })
}

// pnpm: its reader gives files, which its store then writes.
async function unpackPnpm(file, dest) {
  const { filesIndex } = addFilesFromTarball(bytes => ({ bytes }), null, fs.readFileSync(file))
  for (const [name, { bytes }] of Object.entries(filesIndex)) {
    const to = path.join(dest, name)
    fs.mkdirSync(path.dirname(to), { recursive: true })
    fs.writeFileSync(to, bytes)
  }
}

// yarn: the classic one, as a command. What it unpacked lies in its cache.
async function unpackYarn(file, dest) {
  const work = path.join(path.dirname(file), "cache", "yarn")
  fs.rmSync(work, { recursive: true, force: true })
  fs.mkdirSync(work, { recursive: true })
  fs.writeFileSync(path.join(work, "package.json"), JSON.stringify({ name: "x", version: "1.0.0", license: "MIT", dependencies: { foo: "file:" + file } }))
  await promisify(execFile)(process.execPath, [path.join(modules, "yarn/bin/yarn.js"), "install", "--offline", "--no-lockfile", "--ignore-scripts",
    "--no-bin-links", "--non-interactive", "--silent", "--cache-folder", path.join(work, "cache")], { cwd: work })
  const version = path.join(work, "cache", fs.readdirSync(path.join(work, "cache")).find(n => /^v\d/.test(n)))
  const folder = fs.readdirSync(version).find(n => n.startsWith("npm-foo-"))
  fs.cpSync(path.join(version, folder, "node_modules", "foo"), dest, { recursive: true, verbatimSymlinks: true })
  for (const own of [".yarn-metadata.json", ".yarn-tarball.tgz"]) fs.rmSync(path.join(dest, own), { force: true })
  fs.rmSync(work, { recursive: true, force: true })
}

// scripts are the names of what npm runs for a package in a folder, as its
// rebuild chooses them, and whether a package within it runs something.
async function scripts(dest) {
  const tree = await new Arborist({ path: dest, ignoreScripts: true }).loadActual()
  const names = []
  for (const node of [tree, ...tree.inventory.values()]) {
    if (node.isLink) continue
    const { scripts = {}, gypfile } = node.package
    const own = ["preinstall", "install", "postinstall"].filter(name => scripts && scripts[name])
    if (!own.includes("preinstall") && !own.includes("install") && gypfile !== false && await isNodeGypPackage(node.path)) own.push("binding.gyp")
    if (node === tree) names.push(...own)
    else if (own.length && !names.includes("bundled")) names.push("bundled")
  }
  return names
}

async function unpack({ tool, file, dest }) {
  const ways = { npm: unpackNpm, pnpm: unpackPnpm, yarn: unpackYarn }
  await ways[tool](file, dest)
  // What npm can't make a package of runs nothing, and yet has landed.
  return tool === "npm" ? await scripts(dest).catch(() => []) : []
}

// What an unpacker throws where nobody can catch it ends an install, too.
function thrown() {
  return new Promise((_, reject) => {
    process.removeAllListeners("uncaughtException")
    process.on("uncaughtException", reject)
  })
}

async function main() {
  process.umask(0o022)
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer
    try {
      answer = { scripts: await Promise.race([unpack(JSON.parse(line)), thrown()]) }
    } catch (err) {
      answer = { error: String(err && err.message || err) }
    }
    process.stdout.write(JSON.stringify(answer) + "\n")
  }
}

main()
