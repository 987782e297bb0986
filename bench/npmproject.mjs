// Runs once in a sandbox: locks a project, and keeps its lockfile, packuments and tarballs under a
// registry's name that is nobody's. Arguments: the directory, the name, the dependencies as JSON.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'

const [dir, base, dependencies] = process.argv.slice(-3)

// keep writes a file below the directory.
function keep(path, bytes) {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), bytes)
}

async function get(url) {
  const answer = await fetch(url)
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`)
  return Buffer.from(await answer.arrayBuffer())
}

const tarball = (name, url) => `${name}/-/${new URL(url).pathname.split('/').pop()}`

keep('project/package.json', JSON.stringify({ name: 'bench', version: '1.0.0', private: true, dependencies: JSON.parse(dependencies) }))
const npm = (...args) => execFileSync('npm', args, { cwd: join(dir, 'project') }).toString()
npm('install', '--package-lock-only', '--ignore-scripts', '--silent')
const registry = npm('config', 'get', 'registry').trim()

const lock = JSON.parse(readFileSync(join(dir, 'project/package-lock.json')))
const names = new Set()
for (const [place, entry] of Object.entries(lock.packages)) {
  if (!entry.resolved) continue
  const name = entry.name ?? place.split('node_modules/').pop()
  names.add(name)
  const path = tarball(name, entry.resolved)
  keep(path, await get(entry.resolved))
  entry.resolved = base + path
}
keep('project/package-lock.json', JSON.stringify(lock, null, 2))
for (const name of names) {
  const packument = JSON.parse(await get(registry + name.replace('/', '%2f')))
  for (const manifest of Object.values(packument.versions)) manifest.dist.tarball = base + tarball(name, manifest.dist.tarball)
  keep(`${name}/packument.json.gz`, gzipSync(JSON.stringify(packument)))
}
keep('project/names.json', JSON.stringify([...names].sort()))
