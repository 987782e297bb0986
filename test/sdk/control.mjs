// What a user of the JavaScript SDK does with sandboxes, from the outside. SDK_DIR
// is where e2b is installed; the SDK's own variables say where the daemon is.
// OTHER_KEY is another client's, FEW_KEY one that may have one sandbox, SLOW_KEY
// one that may make one a minute. Each line that it prints is a thing that worked.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const sdk = createRequire(process.env.SDK_DIR + '/')('e2b')
const { Sandbox, AuthenticationError, SandboxError, RateLimitError, NotFoundError, SandboxNotFoundError, Template } = sdk
const { OTHER_KEY, FEW_KEY, SLOW_KEY } = process.env

const ok = (name) => console.log('ok ' + name)
const raises = async (kind, pattern, promise) => {
  const err = await promise.then((v) => assert.fail('it worked: ' + JSON.stringify(v)), (e) => e)
  assert.ok(err instanceof kind, `${err.constructor.name} instead of ${kind.name}: ${err.message}`)
  assert.match(err.message, pattern)
  return err
}
const pages = async (paginator) => {
  const all = []
  let n = 0
  for (; paginator.hasNext; n++) all.push(...(await paginator.nextItems()))
  return { all, n }
}
const near = (date, seconds) => assert.ok(Math.abs(date - Date.now() - seconds * 1000) < 45_000, `${date} is not in ${seconds} s`)

const wrong = 'e2b_' + '0'.repeat(40)
await raises(AuthenticationError, /not valid here/, Sandbox.create({ apiKey: wrong }))
await raises(AuthenticationError, /not valid here/, Sandbox.getInfo('sb1', { apiKey: wrong }))
ok('AuthenticationError')

const box = await Sandbox.create({ metadata: { suite: 'control', 'a b': 'c+d&e=%' }, envs: { A: '1' }, timeoutMs: 120_000 })
{
  const info = await box.getInfo()
  assert.equal(info.sandboxId, box.sandboxId)
  assert.deepEqual(info.metadata, { suite: 'control', 'a b': 'c+d&e=%' })
  assert.deepEqual([info.state, info.templateId, info.cpuCount, info.memoryMB], ['running', 'base', 2, 2048])
  near(info.endAt, 120)
  near(info.startedAt, 0)
  if (info.network) assert.deepEqual([info.network.denyOut, info.network.allowOut, info.allowInternetAccess], [['0.0.0.0/0'], [], false])
  if (info.lifecycle) assert.deepEqual(info.lifecycle, { onTimeout: 'kill', autoResume: false })
  assert.equal(box.getHost(3000), `3000-${box.sandboxId}.${process.env.TEST_DOMAIN}`)
  ok('create, getInfo: what the policy gives is shown')
}
{
  await raises(SandboxError, /403.*may not use the policy "secret"; it may choose: data, default/, Sandbox.create({ metadata: { policy: 'secret' } }))
  const other = await Sandbox.create({ metadata: { policy: 'data' } })
  assert.equal((await other.getInfo()).metadata.policy, 'data')
  assert.equal(await Sandbox.kill(other.sandboxId), true)
  await raises(SandboxError, /404.*no template or snapshot "nothing"/, Sandbox.create('nothing'))
  await raises(SandboxError, /400.*no volumes/, Sandbox.create({ volumeMounts: { '/a': 'a' } }))
  await raises(SandboxError, /400.*denyOut/, Sandbox.create({ network: { allowOut: ['a.example'] } }))
  await raises(SandboxError, /400.*from 0 to/, Sandbox.create({ timeoutMs: 100 * 3600_000 }))
  ok('policies by metadata; what is refused says why')
}
{
  const made = []
  for (const n of ['1', '2', '3']) made.push((await Sandbox.create({ metadata: { list: 'yes', n } })).sandboxId)
  const query = { metadata: { list: 'yes' } }
  const { all, n } = await pages(Sandbox.list({ query, limit: 2 }))
  assert.deepEqual([all.map((s) => s.sandboxId), n], [made.toReversed(), 2])
  assert.deepEqual((await pages(Sandbox.list({ query: { metadata: { 'a b': 'c+d&e=%' } } }))).all.map((s) => s.sandboxId), [box.sandboxId])
  await Sandbox.pause(made[1])
  const inState = async (state) => (await pages(Sandbox.list({ query: { ...query, state } }))).all.map((s) => s.sandboxId)
  assert.deepEqual(await inState(['paused']), [made[1]])
  assert.deepEqual(await inState(['running', 'paused']), made.toReversed())
  assert.deepEqual((await pages(Sandbox.list({ apiKey: OTHER_KEY }))).all, [])
  for (const id of made) assert.equal(await Sandbox.kill(id), true)
  ok('list: pages, metadata, states, one client only')
}
{
  await box.setTimeout(600_000)
  near((await box.getInfo()).endAt, 600)
  await Sandbox.setTimeout(box.sandboxId, 60_000)
  near((await box.getInfo()).endAt, 60)
  await Sandbox.connect(box.sandboxId, { timeoutMs: 1_000 })
  near((await box.getInfo()).endAt, 60)
  await Sandbox.connect(box.sandboxId, { timeoutMs: 300_000 })
  near((await box.getInfo()).endAt, 300)
  ok('setTimeout; connect only makes it longer')
}
{
  const long = box.sandboxId + '-6532622b'
  assert.equal((await Sandbox.getInfo(long)).sandboxId, box.sandboxId)
  const paused = await Promise.all([1, 2, 3].map(() => Sandbox.pause(long)))
  assert.ok(paused.some((p) => p !== false), String(paused))
  assert.equal(await Sandbox.pause(box.sandboxId), false)
  assert.equal((await box.getInfo()).state, 'paused')
  assert.equal(await box.isRunning(), false)
  await box.connect()
  assert.equal((await box.getInfo()).state, 'running')
  assert.equal(await box.isRunning(), true)
  const again = await Sandbox.connect(box.sandboxId)
  for (const b of [box, again]) {
    await b.files.write('here.txt', 'here')
    assert.equal(await b.files.read('here.txt'), 'here')
  }
  ok('pause, pause again, connect: the object that paused it goes on')
}
{
  const kept = await Sandbox.create({ lifecycle: { onTimeout: 'pause', autoResume: true } })
  const { lifecycle } = await kept.getInfo()
  if (lifecycle) assert.deepEqual(lifecycle, { onTimeout: 'pause', autoResume: true })
  await kept.kill()
  ok('lifecycle')
}
{
  const [sample] = await box.getMetrics()
  assert.deepEqual([sample.cpuCount, sample.diskTotal], [2, 2 ** 32])
  assert.ok(sample.cpuUsedPct >= 0 && sample.memUsed > 0 && sample.memUsed < sample.memTotal, JSON.stringify(sample))
  assert.equal((await Sandbox.getMetrics(box.sandboxId, { start: new Date(Date.now() - 60_000), end: new Date(Date.now() + 60_000) })).length, 1)
  ok('getMetrics')
}
{
  await box.updateNetwork({ allowOut: ['api.example'], denyOut: ['0.0.0.0/0'] })
  await box.updateNetwork({ allowInternetAccess: false })
  await raises(SandboxError, /400.*denyOut/, box.updateNetwork({ denyOut: ['a.example'] }))
  await box.updateNetwork({})
  ok('updateNetwork')
}
{
  const snap = await box.createSnapshot()
  assert.match(snap.snapshotId, /^snap[0-9a-f]{16}$/)
  const { all } = await pages(Sandbox.listSnapshots({ limit: 1 }))
  assert.deepEqual(all.map((s) => s.snapshotId), [snap.snapshotId])
  assert.deepEqual((await pages(Sandbox.listSnapshots({ apiKey: OTHER_KEY }))).all, [])
  const copy = await Sandbox.create(snap.snapshotId)
  assert.notEqual(copy.sandboxId, box.sandboxId)
  assert.equal((await copy.getInfo()).templateId, snap.snapshotId)
  await copy.kill()
  if (snap.names) {
    const tagged = await box.createSnapshot({ name: 'ready:v1' })
    assert.deepEqual(tagged.names, ['ready:v1'])
    const made = await Sandbox.create('ready:v1')
    await made.kill()
    assert.equal(await Sandbox.deleteSnapshot('ready:v1'), true)
  }
  assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId, { apiKey: OTHER_KEY }), false)
  assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId), true)
  assert.equal(await Sandbox.deleteSnapshot(snap.snapshotId), false)
  await raises(SandboxError, /404.*no template or snapshot/, Sandbox.create(snap.snapshotId))
  ok('snapshots')
}
if (Sandbox.prototype.fork) {
  const copies = await box.fork({ count: 2, timeoutMs: 60_000 })
  assert.equal(copies.length, 2)
  for (const copy of copies) {
    assert.notEqual(copy.sandboxId, box.sandboxId)
    await copy.files.write('fork.txt', 'a fork')
    assert.equal(await copy.files.read('fork.txt'), 'a fork')
    assert.equal((await copy.getInfo()).metadata.suite, 'control')
    near((await copy.getInfo()).endAt, 60)
    await copy.kill()
  }
  ok('fork')
}
{
  // Newer versions wait as Retry-After says, and try again.
  const first = await Sandbox.create({ apiKey: FEW_KEY })
  await raises(RateLimitError, /quota is 1/, Sandbox.create({ apiKey: FEW_KEY, retries: 0 }))
  await first.kill()
  // A second one is too many unless a minute passed meanwhile.
  let refused
  for (let i = 0; i < 5 && !refused; i++) {
    const made = await Sandbox.create({ apiKey: SLOW_KEY, retries: 0 }).catch((err) => { refused = err })
    await made?.kill()
  }
  await raises(RateLimitError, /a minute/, Promise.reject(refused))
  ok('RateLimitError')
}
{
  const gone = [NotFoundError, SandboxNotFoundError].find((k) => k === SandboxNotFoundError) ?? NotFoundError
  await raises(gone, /not found/, Sandbox.getInfo(box.sandboxId, { apiKey: OTHER_KEY }))
  await raises(gone, /not found/, Sandbox.connect(box.sandboxId, { apiKey: OTHER_KEY }))
  assert.equal(await Sandbox.kill(box.sandboxId, { apiKey: OTHER_KEY }), false)
  await box.kill()
  assert.equal(await Sandbox.kill(box.sandboxId), false)
  await raises(gone, /not found/, Sandbox.getInfo(box.sandboxId))
  await raises(gone, /not found/, Sandbox.setTimeout(box.sandboxId, 1000))
  await raises(gone, /not found/, Sandbox.pause(box.sandboxId))
  assert.equal(await box.isRunning(), false)
  ok('kill; what is gone or another client\'s is not found')
}
if (Template?.exists) {
  assert.deepEqual([await Template.exists('base'), await Template.exists('nothing')], [true, false])
  ok('Template.exists')
}
