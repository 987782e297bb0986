// sources.mjs PACKAGE SUITE: lays the sources that the map of a published package has over those of a checkout, so that the
// tests of the checkout try the package.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const [dir, suite] = process.argv.slice(2)
const map = JSON.parse(readFileSync(join(dir, 'dist/index.mjs.map'), 'utf8'))
let laid = 0
map.sources.forEach((name, i) => {
  const at = normalize(name.replace(/^\.\.\//, '')) // maps are in dist
  if (!at.startsWith('src/') || typeof map.sourcesContent?.[i] !== 'string') return
  mkdirSync(dirname(join(suite, at)), { recursive: true })
  writeFileSync(join(suite, at), map.sourcesContent[i])
  laid++
})
if (laid === 0) throw new Error(`the map of ${dir} has no sources: its tests would try those of the checkout`)
copyFileSync(join(dir, 'package.json'), join(suite, 'package.json')) // where the version is read
