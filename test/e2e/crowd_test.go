package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// The bounds to which an honest sandbox and the host are held beside hostile ones.
const (
	crowdRatio       = 5 // of the honest one's median beside them to that alone, before or after them, all of this run
	crowdRounds      = 3 // that make a median
	crowdLongRounds  = 30
	gatewayMost      = 256 << 20 // bytes, of its own: what one sandbox may have there, and its collector's room
	keeperMost       = 128 << 20
	crowdStreams     = 60 // of a connection over HTTP/2, as many as it may have
	crowdConnections = 10 // of each attack
	crowdLongest     = 40 // the same, with COFFERDAM_LONG
)

// theirHost is the host that hostile sandboxes may speak to.
const theirHost = "host.example"

// guestAttacks are what is tried from inside, each for ever; a byte of output is a turn. They
// are programs of Python with what it brings.
var guestAttacks = map[string]string{
	// Requests with long headers over HTTP/2, whose bodies never come.
	"streams": `
def text(s): n = len(s); return (bytes([n]) if n < 127 else b"\x7f" + varint(n - 127)) + s
def varint(n):
    out = b""
    while n > 127: out += bytes([n & 127 | 128]); n >>= 7
    return out + bytes([n])
def frame(kind, flags, stream, body): return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body
block = b"\x83\x87" + b"\x04" + text(b"/slow") + b"\x01" + text(HOST.encode()) + b"".join(b"\x00" + text(b"x-%d" % i) + text(b"v" * 2000) for i in range(7))
def one():
    context = ssl.create_default_context()
    context.set_alpn_protocols(["h2"])
    with context.wrap_socket(socket.create_connection((HOST, 443), 20), server_hostname=HOST) as s:
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
        for i in range(STREAMS): s.sendall(frame(1, 4, 2 * i + 1, block) + frame(0, 0, 2 * i + 1, b"z" * 500))
        told()
        while s.recv(65536): pass
many(one, CONNECTIONS)
`,
	// Bodies that are read whole before they go on, byte by byte.
	"bodies": `
def one():
    context = ssl.create_default_context()
    with context.wrap_socket(socket.create_connection((HOST, 443), 20), server_hostname=HOST) as s:
        s.sendall(b"POST /searched HTTP/1.1\r\nHost: " + HOST.encode() + b"\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 900000)
        told()
        for i in range(20): time.sleep(0.2); s.sendall(b"x")
many(one, CONNECTIONS)
`,
	// Connections that do not come to say what they are for.
	"unfinished": `
def one():
    with socket.create_connection((INDEX, 443), 20) as s, socket.create_connection((HOST, 443), 20) as o:
        s.sendall(b"\x16\x03\x01\x02\x00"); o.sendall(b"\x16\x03\x01\x02\x00")
        told()
        time.sleep(3)
many(one, CONNECTIONS)
`,
	// The attempts that are refused, and on record, again and again.
	"refusals": `
count = 0
def one():
    global count
    count += 1
    try: socket.getaddrinfo("n%d.example" % count, 443)
    except OSError: pass
    try: urllib.request.urlopen("https://" + HOST + "/forbidden/%d" % count, timeout=20)
    except OSError: pass
    told()
many(one, 8)
`,
}

const attackPrelude = `
import os, socket, ssl, struct, sys, threading, time, urllib.request
HOST, INDEX, STREAMS, CONNECTIONS = %q, %q, %d, %d
def told(): os.write(1, b".")
def many(one, n):
    def go():
        while True:
            try: one()
            except OSError: time.sleep(0.05)
    all = [threading.Thread(target=go) for _ in range(n)]
    for t in all: t.start()
    for t in all: t.join()
`

// TestHostileSandboxes: beside those that do their worst to the gateway, the keeper and what
// packs their files, an honest sandbox is made and installs in a time that is bounded by the
// time that it takes alone, and what serves all stays small. With COFFERDAM_LONG there are ten times as
// many rounds, and more of each attack.
func TestHostileSandboxes(t *testing.T) {
	const host = "index.example"
	wheel, digest := bigWheel(t, 1<<20)
	l := liar.New(t, host)
	page := fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest)
	l.Script(host+"/simple/big/", liar.Body("text/html", []byte(page)))
	l.Script(host+"/files/big-1.0-py3-none-any.whl", func(_ *liar.Server, w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, wheel) })
	in := start(t, localUpstream(t, l, host)+mutedHost(t)+"default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\n")
	for name, policy := range map[string]string{
		"good": "name: good\nallowed_packages: { python: [ { name: big } ] }\n",
		"bad": "name: bad\nallowed_packages: { python: [ { name: big } ] }\nnetwork_allowlist:\n" +
			"  - { host: " + theirHost + ", methods: [POST], paths: [\"/slow\"] }\n  - { host: " + theirHost + ", methods: [POST], paths: [\"/searched\"], deny_patterns: [\"secret-[0-9]+\"] }\n",
	} {
		if _, err := in.Client.PutPolicy(t.Context(), name, api.PutPolicy{Document: []byte(policy)}); err != nil {
			t.Fatal(err)
		}
	}
	good := in.tenant(t, "honest")
	good.inARow(t, 1) // which fills caches
	rounds, connections := crowdRounds, crowdConnections
	if os.Getenv("COFFERDAM_LONG") != "" {
		rounds, connections = crowdLongRounds, crowdLongest
	}
	alone := good.inARow(t, rounds)
	turns, end := in.crowd(t, connections)
	most := in.watchRoles(t)
	beside := good.inARow(t, rounds)
	largest := most()
	end()
	base := max(median(alone), median(good.inARow(t, rounds))) // what else the host does may have begun meanwhile
	for what, count := range turns {
		t.Logf("hostile: %d turns of %s", count.Load(), what)
		if count.Load() == 0 {
			t.Errorf("INCONCLUSIVE: no hostile sandbox did %q", what)
		}
	}
	for role, bound := range map[string]int64{"daemon": tenantsMemory, "gateway": gatewayMost, "keeper": keeperMost} {
		t.Logf("the %s had at most %d MiB", role, largest[role]>>20)
		if largest[role] == 0 || largest[role] > bound {
			t.Errorf("the %s had %d MiB of its own; it may have %d", role, largest[role]>>20, bound>>20)
		}
	}
	ratio := float64(median(beside)) / float64(base)
	t.Logf("the honest one: %v alone, %v beside: %.2f times", base, median(beside), ratio)
	if ratio > crowdRatio {
		t.Errorf("an honest sandbox takes %.2f times as long beside hostile ones; it may take %d", ratio, crowdRatio)
	}
}

// mutedHost is the configuration of a host that takes requests and answers none.
func mutedHost(t *testing.T) string {
	t.Helper()
	cert, ca, err := certified(theirHost)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "host-ca.pem")
	if err := os.WriteFile(path, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	s.EnableHTTP2, s.TLS = true, &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	t.Cleanup(func() {
		close(over)
		s.CloseClientConnections()
		s.Close()
	})
	return fmt.Sprintf("network:\n  hosts:\n    - { name: %q, port: 443, address: %q, ca_file: %q }\n", theirHost, s.Listener.Addr(), path)
}

// inARow is how long an honest sandbox took, made and installed into, that many times.
func (n *tenant) inARow(t *testing.T, rounds int) (took []time.Duration) {
	t.Helper()
	for range rounds {
		one, err := n.round(t.Context())
		if err != nil {
			t.Fatalf("the honest one: %v", err)
		}
		took = append(took, one[0]+one[1])
	}
	return took
}

func median(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// crowd begins all attacks, each counted by its turns, until end is called.
func (in *installation) crowd(t *testing.T, connections int) (turns map[string]*atomic.Int64, end func()) {
	t.Helper()
	token := api.MakeToken{Name: "mallory", Policy: "bad", Quota: api.Quota{Sandboxes: 3}}
	bad, _, _ := in.clientOf(t, token)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	turns = map[string]*atomic.Int64{"files": {}, "homes": {}}
	sb, err := bad.CreateSandbox(ctx, api.CreateSandbox{Linger: true})
	if err != nil {
		t.Fatal(err)
	}
	prelude := fmt.Sprintf(attackPrelude, theirHost, "index.example", crowdStreams, connections)
	for what, script := range guestAttacks {
		count := &atomic.Int64{}
		turns[what] = count
		cmd, err := bad.StartCommand(ctx, sb.ID, api.StartCommand{Argv: []string{"python3", "-c", prelude + script}})
		if err != nil {
			t.Fatal(err)
		}
		at, err := bad.Attach(ctx, sb.ID, cmd.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { countTurns(t, at, count) })
	}
	files, homes := turns["files"], turns["homes"]
	all.Go(func() { snapshotsWithoutEnd(ctx, bad, files) })
	all.Go(func() { homesWithoutEnd(ctx, in.Client, homes) })
	until(t, "all attacks go on", func() bool {
		for what, count := range turns {
			if what != "files" && what != "homes" && count.Load() == 0 {
				return false
			}
		}
		return true
	})
	return turns, func() {
		cancel()
		if err := bad.DestroySandbox(context.WithoutCancel(ctx), sb.ID); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

func countTurns(t *testing.T, at *client.Attachment, turns *atomic.Int64) {
	t.Helper()
	defer at.Close()
	for event, err := range at.Events() {
		if err != nil {
			return // it was ended
		}
		turns.Add(int64(len(event.Stdout)))
		if event.Exit != nil && turns.Load() == 0 {
			t.Errorf("a hostile program ended at once: %+v", *event.Exit)
		}
		if text := strings.TrimSpace(string(event.Stderr)); text != "" {
			t.Log("a hostile program says:", text)
		}
	}
}

// hostileFiles makes many names in one directory, and directories that lie deep.
const hostileFiles = `
import os
os.makedirs("/home/agent/wide", exist_ok=True)
for i in range(3000): open("/home/agent/wide/" + "y" * 200 + str(i), "w").close()
os.chdir("/home/agent")
for i in range(500): os.mkdir("d"); os.chdir("d")
`

// snapshotsWithoutEnd copies the files of a sandbox with many names again and again.
func snapshotsWithoutEnd(ctx context.Context, c *client.Client, turns *atomic.Int64) {
	sb, err := c.CreateSandbox(ctx, api.CreateSandbox{Linger: true})
	if err != nil {
		return // which the count tells
	}
	defer func() { _ = c.DestroySandbox(context.WithoutCancel(ctx), sb.ID) }()
	one := tenant{Client: c}
	if one.execute(ctx, sb.ID, "python3", "-c", hostileFiles) != nil {
		return
	}
	for ctx.Err() == nil {
		made, err := c.MakeSnapshot(ctx, sb.ID, api.MakeSnapshot{Contents: "files"})
		if err != nil {
			continue
		}
		_ = c.RemoveSnapshot(context.WithoutCancel(ctx), made.ID)
		turns.Add(1)
	}
}

// homesWithoutEnd fills homes and removes them.
func homesWithoutEnd(ctx context.Context, c *client.Client, turns *atomic.Int64) {
	const fill = `
import os
os.makedirs("/home/agent/kept/d", exist_ok=True)
for i in range(1000): open("/home/agent/kept/d/" + str(i), "w").close()
`
	one := tenant{Client: c}
	for ctx.Err() == nil {
		sb, err := c.CreateSandbox(ctx, api.CreateSandbox{Template: "debian", Policy: api.Policy{Document: []byte("name: homes\n")}, Linger: true, Home: &api.Home{Name: "hostile", Keeps: []string{"kept"}}})
		if err != nil {
			continue
		}
		_ = one.execute(ctx, sb.ID, "python3", "-c", fill)
		_ = c.DestroySandbox(context.WithoutCancel(ctx), sb.ID)
		if client.RemoveHome(context.WithoutCancel(ctx), c, "hostile") == nil {
			turns.Add(1)
		}
	}
}

// watchRoles begins to look how much memory of its own each role has; most ends that, and
// tells the most that was seen.
func (in *installation) watchRoles(t *testing.T) (most func() map[string]int64) {
	t.Helper()
	roles := in.roles(t)
	over, end := context.WithCancel(t.Context())
	largest := map[string]int64{}
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for over.Err() == nil {
			for role, pid := range roles {
				largest[role] = max(largest[role], resident(t, pid, "RssAnon:"))
			}
			<-tick.C
		}
	})
	return func() map[string]int64 {
		end()
		watch.Wait()
		return largest
	}
}
