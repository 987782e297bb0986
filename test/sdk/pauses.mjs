// What a user of the JavaScript SDK does with sandboxes of which only files are kept,
// and what the command line of the same makers prints of their logs, if CLI says where
// that is. SDK_DIR is where e2b is installed. Each line that it prints is a thing that
// worked.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'

const { Sandbox, SandboxNotFoundError, TimeoutError } = createRequire(process.env.SDK_DIR + '/')('e2b')
const ok = (name) => console.log('ok ' + name)

let box = await Sandbox.create({ metadata: { policy: 'list' }, envs: { GIVEN: 'word' }, timeoutMs: 600_000 })
const says = async (command) => (await box.commands.run(command)).stdout.trim()
await box.commands.run('pip install --quiet iniconfig==2.0.0 && echo kept >kept && touch /tmp/gone')
const run = await says('echo $COFFERDAM_RUN')
const beganAnew = async (cut) => {
  assert.equal(await says("cat kept; echo $GIVEN $COFFERDAM_RUN; python3 -c 'import iniconfig; print(1)'; ls /tmp | grep -c gone || true"), `kept\nword ${run}\n1\n0`)
  assert.deepEqual(await box.commands.list(), [])
  await assert.rejects(cut.wait())
}

let cut = await box.commands.run('sleep 1000', { background: true })
assert.equal(await box.pause({ keepMemory: false }), true)
assert.equal((await Sandbox.getInfo(box.sandboxId)).state, 'paused')
// The errors of this SDK for what is paused or gone, by which programs connect or make another.
const notRunning = async () => {
  for (const call of [() => box.commands.run('true'), () => box.files.read('kept'), () => box.files.list('.')]) {
    await assert.rejects(call, (err) => (err instanceof TimeoutError || err instanceof SandboxNotFoundError) && /was not found|not running/.test(err.message))
  }
}
await notRunning()
box = await box.connect({ timeoutMs: 600_000 })
await beganAnew(cut)
ok('a pause of files')

cut = await box.commands.run('touch /tmp/gone; exec sleep 1000', { background: true })
assert.equal(await box.pause(), true)
box = await box.connect({ timeoutMs: 600_000, onResume: 'reboot' })
await beganAnew(cut)
ok('a connect that starts anew')

if (process.env.CLI) {
  await box.commands.run('echo to the log; echo and badly >&2; exit 3').catch(() => {})
  const log = execFileSync(process.env.CLI, ['sandbox', 'logs', '--format', 'json', box.sandboxId], { encoding: 'utf8' })
  const entries = log.split('\n').filter((l) => l.startsWith('{')).map((l) => JSON.parse(l))
  const of = (event) => entries.filter((e) => e.event_type === event)
  assert.ok(of('stdout').some((e) => e.data === 'to the log\n' && e.logger === 'process'), log)
  assert.ok(of('stderr').some((e) => e.data === 'and badly\n'), log)
  assert.ok(of('process_start').some((e) => /to the log/.test(e.cmd) && e.pid && e.user === 'user'), log)
  assert.ok(of('process_end').some((e) => e.exitCode === '3'), log)
  ok('sandbox logs')
}
await box.kill()
await notRunning()
ok('killed')
