// Says which packages a project's manifests ask for, as npm's and pnpm's own parts read them. It reads a line of JSON for each, with the
// project's directory, and answers with one: an error, or the names. Nothing is installed, and no registry is asked.
"use strict"
const fs = require("node:fs")
const path = require("node:path")
const readline = require("node:readline")

const [modules] = process.argv.slice(2)
const ofNpm = (name) => require(path.join(modules, "npm", "node_modules", name))
const npa = ofNpm("npm-package-arg")
const mapWorkspaces = ofNpm("@npmcli/map-workspaces")
const OverrideSet = ofNpm("@npmcli/arborist/lib/override-set.js")

const text = (file) => fs.readFileSync(file, "utf8").replace(/^\ufeff/, "")

// place says where a spec leads: to a name of the registry, or elsewhere.
function place(name, spec, dir) {
  if (spec.startsWith("catalog:")) return { name, elsewhere: false } // of a workspace that the project is no part of here
  let found
  try {
    found = npa.resolve(name, spec, dir)
  } catch {
    return { name, elsewhere: true } // such as workspace: and jsr:, which are no registry's
  }
  if (found.type === "alias") return { name: found.subSpec.name, elsewhere: false }
  return { name, elsewhere: !["version", "range", "tag"].includes(found.type) }
}

function wanted(pkg) {
  const all = []
  for (const key of ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"]) {
    for (const [name, spec] of Object.entries(pkg[key] || {})) {
      if (key === "peerDependencies" && ((pkg.peerDependenciesMeta || {})[name] || {}).optional) continue
      all.push([name, spec])
    }
  }
  return all
}

async function readNpm(dir) {
  const pkg = JSON.parse(text(path.join(dir, "package.json")))
  const names = [], own = [pkg.name], may = []
  const add = (from, at) => { for (const [name, spec] of wanted(from)) names.push(place(name, spec, at)) }
  add(pkg, dir)
  for (const [name, at] of await mapWorkspaces({ cwd: dir, pkg })) {
    own.push(name)
    add(JSON.parse(text(path.join(at, "package.json"))), at)
  }
  for (const rule of new OverrideSet({ overrides: pkg.overrides || {} }).ruleset.values()) override(rule, dir, may)
  for (const list of [pkg.resolutions, (pkg.pnpm || {}).overrides]) {
    for (const [name, spec] of Object.entries(list || {})) may.push(place(name, spec, dir))
  }
  return { names, own, may }
}

function override(rule, dir, may) {
  if (typeof rule.value === "string" && !rule.value.startsWith("$")) may.push(place(rule.name, rule.value, dir))
  for (const inner of rule.ruleset.values()) if (inner !== rule) override(inner, dir, may)
}

async function readPnpm(dir) {
  const { findWorkspacePackagesNoCheck } = require(path.join(modules, "@pnpm/workspace.find-packages"))
  const { readWorkspaceManifest } = require(path.join(modules, "@pnpm/workspace.read-manifest"))
  const space = (await readWorkspaceManifest(dir)) || {}
  const names = [], own = [], may = []
  const catalogs = { ...(space.catalogs || {}), default: space.catalog || (space.catalogs || {}).default || {} }
  const real = (name, spec) => (spec.startsWith("catalog:") ? (catalogs[spec.slice(8).trim() || "default"] || {})[name] : spec)
  for (const { manifest } of await findWorkspacePackagesNoCheck(dir, { patterns: space.packages || ["."] })) {
    if (manifest.name) own.push(manifest.name)
    for (const [name, written] of wanted(manifest)) {
      const spec = real(name, written)
      names.push(place(name, spec === undefined ? written : spec, dir))
    }
    for (const list of [manifest.resolutions, (manifest.pnpm || {}).overrides]) {
      for (const [name, spec] of Object.entries(list || {})) may.push(place(name, spec, dir))
    }
  }
  for (const list of [...Object.values(catalogs), space.overrides || {}]) {
    for (const [name, spec] of Object.entries(list)) may.push(place(name, spec, dir))
  }
  for (const name of Object.keys(space.configDependencies || {})) may.push({ name, elsewhere: false })
  for (const extended of Object.values(space.packageExtensions || {})) for (const [name, spec] of wanted(extended)) may.push(place(name, spec, dir))
  return { names, own, may }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { tool, file } = JSON.parse(line)
    let answer
    try {
      answer = await (tool === "pnpm" ? readPnpm : readNpm)(file)
    } catch (err) {
      answer = { error: String((err && err.message) || err) || "it says nothing" }
    }
    process.stdout.write(JSON.stringify(answer) + "\n")
  }
}
main()
