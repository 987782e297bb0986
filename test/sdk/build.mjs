// What a user of the JavaScript SDK does to build templates. SDK_DIR is where e2b is
// installed; the SDK's own variables say where the daemon is, OTHER_KEY is another
// client's. Each line that it prints is a thing that worked.
import assert from 'node:assert/strict'
import { mkdtempSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const { Sandbox, Template, waitForPort } = createRequire(process.env.SDK_DIR + '/')('e2b')
const { OTHER_KEY } = process.env
const ok = (name) => console.log('ok ' + name)
const raises = async (pattern, promise) => {
  const err = await promise.then((v) => assert.fail('it worked: ' + JSON.stringify(v)), (e) => e)
  assert.match(err.message, pattern)
}

const context = mkdtempSync(join(tmpdir(), 'build'))
mkdirSync(join(context, 'folder'))
writeFileSync(join(context, 'folder', 'test.txt'), 'This is a test file.')
symlinkSync('test.txt', join(context, 'link'))
writeFileSync(join(context, 'test.txt'), 'Behind a link.')
const name = 'js-' + Date.now().toString(36)
const lines = []
const template = Template({ fileContextPath: context })
  .fromBaseImage()
  .copy('folder/*.txt', 'folder', { forceUpload: true })
  .copy('link', 'resolved', { resolveSymlinks: true, gzip: true })
  .copy('link', 'link', { resolveSymlinks: false, gzip: false })
  .copy('folder', 'rooted', { user: 'root' })
  .copy('folder/test.txt', '/home/user/mine.txt', { user: 'root', mode: 0o640 })
  .setEnvs({ ENV_1: 'value1', ENV_2: 'value2' })
  .runCmd('cat folder/test.txt')
  .makeDir('some/dir')
  .pipInstall('iniconfig')
  .runCmd('touch /usr/local/by-root', { user: 'root' })
  .setWorkdir('/app')
  .setStartCmd('echo "Hello, world!"; exec python3 -m http.server 8124', waitForPort(8124))
const built = await Template.build(template, name, { onBuildLogs: (e) => lines.push(e.message) })
for (const words of ['This is a test file.', 'Hello, world!', 'RUN mkdir -p']) {
  assert.ok(lines.some((l) => l.includes(words)), `the log does not say ${words}: ${lines.join('\n')}`)
}
ok('build')

const box = await Sandbox.create(name)
assert.equal((await box.commands.run('pwd; echo $ENV_1 $ENV_2; cat ~/folder/test.txt; ls ~/some /usr/local/by-root')).stdout, '/app\nvalue1 value2\nThis is a test file./usr/local/by-root\n\n/home/user/some:\ndir\n')
assert.match((await box.commands.run('python3 -c "import iniconfig, urllib.request as u; print(u.urlopen(\'http://127.0.0.1:8124\').status)"')).stdout, /^200$/m)
assert.equal((await box.commands.run('cd; readlink resolved || cat resolved; readlink link')).stdout, 'Behind a link.test.txt\n')
assert.equal((await box.commands.run("cd; stat -c '%U:%G %a' rooted/test.txt mine.txt rooted .")).stdout, 'root:root 644\nroot:root 640\nuser:user 755\n' + 'user:user 755\n')
await box.kill()
ok('sandbox')

assert.deepEqual([await Template.exists(name), await Template.exists(name, { apiKey: OTHER_KEY })], [true, false])
await raises(/no template/, Sandbox.create(name, { apiKey: OTHER_KEY }))
ok('exists')

if (Template.list) {
  const all = []
  for (const paginator = Template.list(); paginator.hasNext;) all.push(...(await paginator.nextItems()))
  const mine = all.find((t) => t.templateId === built.templateId)
  assert.deepEqual([mine.names, mine.public, mine.buildId], [[name], false, built.buildId])
  assert.ok(all.some((t) => t.templateId === 'debian'))
}
ok('list')

assert.deepEqual((await Template.assignTags(name, ['v1', 'v2'])).tags, ['v1', 'v2'])
await Template.removeTags(name, 'v1')
assert.deepEqual((await Template.getTags(name)).map((t) => [t.tag, t.buildId]).sort(), [['default', built.buildId], ['v2', built.buildId]])
await raises(/not valid/, Template.assignTags(name, ':x'))
ok('tags')

const broken = () => Template().fromTemplate('debian')
await raises(/exit code 3: why/, Template.build(broken().runCmd('echo why; exit 3'), name + '-b'))
await raises(/exit code/, Template.build(broken().npmInstall('left-pad'), name + '-b'))
await raises(/start command failed/, Template.build(broken().setStartCmd('./not-there', 'sleep 1'), name + '-b'))
await raises(/pulls no images/, Template.build(Template().fromNodeImage(), name + '-b'))
await raises(/stands for something else/, Template.build(broken(), 'base'))
assert.equal(await Template.exists(name + '-b'), false)
ok('what fails says why')

const info = await Template.buildInBackground(broken().aptInstall(['gawk']).runCmd('gawk "BEGIN { exit 0 }"'), name + ':bg')
assert.match((await Template.getBuildStatus(info)).status, /waiting|building/)
let status = 'building'
while (/waiting|building/.test(status)) ({ status } = await Template.getBuildStatus(info))
assert.equal(status, 'ready')
await Sandbox.deleteSnapshot(built.templateId)
assert.equal(await Template.exists(name), false)
ok('background, delete')
