// What a user of the JavaScript SDK does in one sandbox. SDK_DIR is where e2b is
// installed; the SDK's own variables say where the daemon is. Each line that it
// prints is a thing that worked.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const sdk = createRequire(process.env.SDK_DIR + '/')('e2b')
const { Sandbox, CommandExitError, NotFoundError, TimeoutError, AuthenticationError, InvalidArgumentError, SandboxError } = sdk

const ok = (name) => console.log('ok ' + name)
const raises = async (kind, pattern, promise) => {
  const err = await promise.then((v) => assert.fail('it worked: ' + JSON.stringify(v)), (e) => e)
  assert.ok(err instanceof kind, `${err.constructor.name} instead of ${kind.name}: ${err.message}`)
  assert.match(err.message, pattern)
  return err
}
const until = async (what, probe) => {
  for (let i = 0; i < 1200; i++) {
    if (await probe()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail('it never came: ' + what)
}

const box = await Sandbox.create({ timeoutMs: 600_000 })
assert.equal(await box.isRunning(), true)
ok('create, isRunning')

{
  const r = await box.commands.run('echo out; echo err >&2; echo "$A"', { envs: { A: 'é b' } })
  assert.deepEqual([r.exitCode, r.stdout, r.stderr], [0, 'out\né b\n', 'err\n'])
  const err = await raises(CommandExitError, /exit status 3/, box.commands.run('echo no >&2; exit 3'))
  assert.deepEqual([err.exitCode, err.stderr], [3, 'no\n'])
  let streamed = ''
  await box.commands.run('for i in 1 2 3; do echo $i; done', { onStdout: (s) => { streamed += s } })
  assert.equal(streamed, '1\n2\n3\n')
  const big = await box.commands.run('head -c 3000000 /dev/zero | tr "\\0" x')
  assert.equal(big.stdout.length, 3000000)
  ok('commands.run: output, exit codes, environment, 3 MB')
}
{
  await box.files.makeDir('sub')
  const r = await box.commands.run('basename "$PWD"', { cwd: 'sub' })
  assert.equal(r.stdout, 'sub\n')
  await raises(InvalidArgumentError, /does not exist|no such/i, box.commands.run('true', { cwd: '/no/such/dir' }))
  await raises(AuthenticationError, /no user/, box.commands.run('true', { user: 'nobody-here' }))
  ok('commands.run: cwd and user')
}
{
  const h = await box.commands.run('sleep 3600', { background: true })
  assert.ok(h.pid > 0)
  assert.ok((await box.commands.list()).some((p) => p.pid === h.pid && p.cmd === '/bin/bash'))
  assert.equal(await h.kill(), true)
  const err = await raises(CommandExitError, /killed/, h.wait())
  assert.equal(err.exitCode, -1)
  assert.equal(await box.commands.kill(h.pid), false)
  assert.ok(!(await box.commands.list()).some((p) => p.pid === h.pid))
  ok('background, list, kill, kill of what has ended')
}
{
  const h = await box.commands.run('while read line; do echo "got $line"; done; echo end', { background: true, stdin: true })
  await h.disconnect()
  let seen = ''
  const again = await box.commands.connect(h.pid, { onStdout: (s) => { seen += s } })
  await box.commands.sendStdin(h.pid, 'one\n')
  await until('the echo', () => seen.includes('got one'))
  if (box.commands.closeStdin) await box.commands.closeStdin(h.pid)
  else await box.commands.sendStdin(h.pid, '\n')
  if (box.commands.closeStdin) {
    const r = await again.wait()
    assert.equal(r.stdout, 'got one\nend\n')
    const late = await box.commands.connect(h.pid)
    assert.equal((await late.wait()).exitCode, 0)
  } else {
    await again.kill()
  }
  await raises(NotFoundError, /no process/, box.commands.connect(4000000))
  ok('disconnect, connect, stdin, its end, the exit status of one that has ended')
}
{
  // It would last longer than is waited for its end.
  await raises(TimeoutError, /timeoutMs|deadline/, box.commands.run('sleep 3600; echo late', { timeoutMs: 700 }))
  await until('the end of it', async () => !(await box.commands.list()).some((p) => p.args.includes('sleep 3600; echo late')))
  const h = await box.commands.run('sleep 1; echo on', { background: true })
  const r = await h.wait()
  assert.equal(r.stdout, 'on\n')
  ok('a timeout kills')
}
{
  let seen = ''
  const decoder = new TextDecoder()
  const pty = await box.pty.create({ cols: 90, rows: 31, onData: (d) => { seen += decoder.decode(d) }, timeoutMs: 0 })
  await box.pty.sendInput(pty.pid, new TextEncoder().encode('stty size\n'))
  await until('the size', () => /31 90/.test(seen))
  await box.pty.resize(pty.pid, { cols: 101, rows: 17 })
  await box.pty.sendInput(pty.pid, new TextEncoder().encode('stty size\n'))
  await until('the new size', () => /17 101/.test(seen))
  await box.pty.sendInput(pty.pid, new TextEncoder().encode('exit\n'))
  await pty.wait()
  ok('pty: input, resize, exit')
}
{
  const w = await box.files.write('dir/a.txt', 'héllo')
  assert.deepEqual([w.name, w.path, w.type], ['a.txt', '/home/user/dir/a.txt', 'file'])
  assert.equal(await box.files.read('dir/a.txt'), 'héllo')
  const bytes = new Uint8Array(300_000).map((_, i) => i * 7)
  await box.files.write('b.bin', bytes.buffer)
  assert.deepEqual(await box.files.read('b.bin', { format: 'bytes' }), bytes)
  const stream = await box.files.read('b.bin', { format: 'stream' })
  let total = 0
  for await (const chunk of stream) total += chunk.length
  assert.equal(total, bytes.length)
  const blob = await box.files.read('b.bin', { format: 'blob' })
  assert.equal(blob.size, bytes.length)
  await box.files.write('c.txt', new Blob(['blob']).stream())
  assert.equal(await box.files.read('c.txt'), 'blob')
  await box.files.write('empty', '')
  assert.equal(await box.files.read('empty'), '')
  const many = await box.files.write([{ path: 'm/1', data: 'one' }, { path: 'm/2', data: 'two' }])
  assert.equal(many.length, 2)
  assert.equal(await box.files.read('m/2'), 'two')
  await box.files.write('z.txt', 'zipped '.repeat(1000), { gzip: true })
  assert.equal(await box.files.read('z.txt', { gzip: true }), 'zipped '.repeat(1000))
  await box.files.write("sp ace 'q' é.txt", 'name')
  assert.equal(await box.files.read("sp ace 'q' é.txt"), 'name')
  ok('files: write and read as text, bytes, blob, stream; many; gzip; names')
}
{
  await raises(NotFoundError, /no such file|does not exist/, box.files.read('nothing'))
  await raises(InvalidArgumentError, /not a file|regular|directory/, box.files.read('/home/user'))
  await raises(NotFoundError, /no such file|does not exist/, box.files.list('/nothing'))
  assert.equal(await box.files.makeDir('deep/er'), true)
  assert.equal(await box.files.makeDir('deep/er'), false)
  assert.equal(await box.files.exists('deep/er'), true)
  assert.equal(await box.files.exists('deep/no'), false)
  await box.files.write('deep/f', 'x')
  const list = await box.files.list('deep')
  assert.deepEqual(list.map((e) => [e.name, e.type, e.path]).sort(), [['er', 'dir', '/home/user/deep/er'], ['f', 'file', '/home/user/deep/f']])
  await box.files.write('deep/er/g', 'y')
  assert.equal((await box.files.list('deep', { depth: 2 })).length, 3)
  const info = await box.files.getInfo('deep/f')
  assert.deepEqual([info.size, info.permissions, info.mode], [1, '-rw-r--r--', 0o644])
  assert.ok(Math.abs(info.modifiedTime - Date.now()) < 600_000)
  const moved = await box.files.rename('deep/f', 'deep/new/h')
  assert.equal(moved.path, '/home/user/deep/new/h')
  await raises(NotFoundError, /no such file|does not exist/, box.files.rename('deep/f', 'x'))
  await box.commands.run('ln -s new/h link; ln -s er dirlink', { cwd: 'deep' })
  const link = await box.files.getInfo('deep/link')
  assert.deepEqual([link.type, link.symlinkTarget], ['file', '/home/user/deep/new/h'])
  assert.equal((await box.files.getInfo('deep/dirlink')).type, 'dir')
  await box.files.remove('deep')
  assert.equal(await box.files.exists('deep'), false)
  await box.files.remove('deep')
  ok('files: list, exists, info, rename, links, remove')
}
{
  await box.files.makeDir('watched')
  const events = []
  const watch = await box.files.watchDir('watched', (e) => { events.push(e) })
  await box.files.write('watched/w.txt', '1')
  await until('the events', () => events.some((e) => e.name === 'w.txt' && e.type === 'create') && events.some((e) => e.type === 'write'))
  if (process.env.DATA_HELD === undefined) assert.deepEqual(events.map((e) => e.type), ['create', 'chmod', 'write'])
  await box.files.remove('watched/w.txt')
  await until('the removal', () => events.some((e) => e.name === 'w.txt' && e.type === 'remove'))
  await watch.stop()
  await raises(NotFoundError, /no such file|does not exist/, box.files.watchDir('nowhere', () => {}))
  ok('watchDir')
}
{
  const put = await box.uploadUrl('up.txt')
  const form = new FormData()
  form.append('file', new Blob(['uploaded']), 'up.txt')
  const up = await fetch(put, { method: 'POST', body: form })
  assert.equal(up.status, 200, await up.text())
  const get = await box.downloadUrl('up.txt', { useSignatureExpiration: 60_000 })
  assert.equal(await (await fetch(get)).text(), 'uploaded')
  const old = await box.downloadUrl('up.txt', { useSignatureExpiration: -60_000 })
  const res = await fetch(old)
  assert.equal(res.status, 401)
  assert.deepEqual(await res.json(), { code: 401, message: 'signature is already expired' })
  assert.equal((await fetch(get.replace(/signature=v1_.{4}/, 'signature=v1_AAAA'))).status, 401)
  ok('signed URLs')
}
{
  const held = process.env.DATA_HELD
  if (held) {
    const h = await box.commands.run(held, { background: true, stdin: true })
    const err = await raises(SandboxError, /request ap-held .*cofferdam approvals approve ap-held/, h.wait())
    assert.ok(!(err instanceof TimeoutError))
    await raises(SandboxError, /ap-held/, box.commands.connect(h.pid))
    await fetch(process.env.E2B_API_URL + '/test/answer', { method: 'POST' })
    let seen = ''
    const again = await box.commands.connect(h.pid, { onStdout: (s) => { seen += s } })
    await box.commands.sendStdin(h.pid, 'go\n')
    await again.wait()
    assert.match(seen, /on with go/)
    ok('a hold ends the stream, and the command goes on afterwards')
    await raises(SandboxError, /rule no-such-thing denies it/, box.commands.run('forbidden thing'))
    ok('a refused command')
  }
}
{
  const h = await box.commands.run('sleep 3600', { background: true })
  const end = raises(SandboxError, /./, h.wait())
  await box.kill()
  const err = await end
  console.log('# the end of a stream of a killed sandbox:', err.name, err.message.slice(0, 80))
  assert.equal(await box.isRunning(), false)
  await raises(TimeoutError, /./, box.files.read('c.txt'))
  await raises(SandboxError, /./, box.commands.run('true'))
  ok('a killed sandbox')
}
process.exit(0)
