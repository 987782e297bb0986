package sandbox_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Programs that have drawn random numbers before the copy, and draw the next ones after
// it: OpenSSL's, in one program with the hook and in one without. HOOK is what they do at
// their start, and each of them ends once the file of its name says go.
const (
	drawsInPython = `
import os, ssl, sys, time
sys.path.append("/run/cofferdam/hooks")
import cofferdam
name, hooked = sys.argv[1], sys.argv[2] == "hooked"
renewed = []
if hooked:
    cofferdam.on_restore(lambda: renewed.append(1))
def hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="name.example").do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read().hex()
ssl.RAND_bytes(16), hello()
print("ready", flush=True)
while not os.path.exists("/tmp/go-" + name) or hooked and not renewed:
    time.sleep(0.01)
print(ssl.RAND_bytes(32).hex(), hello(), cofferdam.generation(), flush=True)
`
	drawsInNode = `
const fs = require('node:fs'), crypto = require('node:crypto')
const cofferdam = require('/run/cofferdam/hooks/cofferdam.cjs')
const [name, how] = process.argv.slice(1)
const key = () => crypto.generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'der' }).toString('hex')
let renewed = how !== 'hooked'
if (!renewed) cofferdam.onRestore(() => { renewed = true })
crypto.randomBytes(16), key()
console.log('ready')
const timer = setInterval(() => {
  if (!renewed || !fs.existsSync('/tmp/go-' + name)) return
  console.log(crypto.randomBytes(32).toString('hex'), key(), cofferdam.generation())
  clearInterval(timer)
}, 10)
`
)

// TestRealCopiesDrawTheirOwn: what a program draws of its OpenSSL after a copy is the same
// in each copy, byte by byte, a whole ClientHello and private keys too; with the hook it
// is another in each.
func TestRealCopiesDrawTheirOwn(t *testing.T) {
	s := newRealStudio(t)
	source := s.create(s.request(house)).Info()
	programs := map[string][]string{
		"python-hooked": {"/usr/bin/python3", "-c", drawsInPython, "python-hooked", "hooked"},
		"python-plain":  {"/usr/bin/python3", "-c", drawsInPython, "python-plain", "plain"},
	}
	if _, err := os.Stat("/usr/bin/node"); err == nil {
		programs["node-hooked"] = []string{"/usr/bin/node", "-e", drawsInNode, "node-hooked", "hooked"}
		programs["node-plain"] = []string{"/usr/bin/node", "-e", drawsInNode, "node-plain", "plain"}
	}
	commands := map[string]string{}
	for name, argv := range programs {
		c, err := s.Start(t.Context(), source.ID, sandbox.Command{Argv: argv, Dir: "/"})
		must(t, err)
		commands[name] = c.ID
		s.awaitText(source.ID, c.ID, "ready\n")
	}
	_, err := s.Snapshot(t.Context(), source.ID, "base", engine.ContentsMemory)
	must(t, err)
	drawn := map[string][]string{}
	for range 2 {
		id := s.create(sandbox.Request{Snapshot: "base", User: "ann", Linger: true}).Info().ID
		for name, command := range commands {
			s.sh(id, "touch /tmp/go-"+name)
			out, exit := s.await(id, command, 0)
			if exit.Code != 0 {
				t.Fatalf("%s: %+v\n%s", name, exit, out)
			}
			lines := strings.Split(strings.TrimSpace(out), "\n")
			drawn[name] = append(drawn[name], lines[len(lines)-1])
		}
	}
	for name, lines := range drawn {
		first, second := strings.Fields(lines[0]), strings.Fields(lines[1])
		if len(first) != 3 || len(second) != 3 || len(first[0]) != 64 || len(first[1]) < 64 {
			t.Fatalf("%s printed %q and %q", name, lines[0], lines[1])
		}
		if first[2] == second[2] {
			t.Errorf("%s: both copies have the generation %s", name, first[2])
		}
		for i, what := range []string{"random bytes", "ClientHello or private key"} {
			if same, shared := first[i] == second[i], strings.HasSuffix(name, "-plain"); same != shared {
				t.Errorf("%s: the same %s in both copies: %v, want %v", name, what, same, shared)
			}
		}
	}
}
