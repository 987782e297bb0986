package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// The bounds to which two tenants beside each other are held.
const (
	tenantsTime   = 10 * time.Minute
	tenantsMemory = 200 << 20 // of the daemon, its own
	tenantsRatio  = 3         // of the good one's p99 beside the hostile one to that alone
	leastDone     = 10        // of each of its attacks, a minute, for it to count as hostile
)

// TestAHostileTenant lets one token do its worst for ten minutes while another makes
// sandboxes and installs into them: the daemon stays small, and the other's p99 grows
// by no more than a factor. It is there with COFFERDAM_LONG; COFFERDAM_TENANTS is
// another duration, of which a quarter is the good one's alone.
func TestAHostileTenant(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for it: it takes 10 minutes")
	}
	length := tenantsTime
	if text := os.Getenv("COFFERDAM_TENANTS"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	const host = "index.example"
	wheel, digest := bigWheel(t, 1<<20)
	l := liar.New(t, host)
	page := fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest)
	l.Script(host+"/simple/big/", liar.Body("text/html", []byte(page)))
	l.Script(host+"/files/big-1.0-py3-none-any.whl", func(_ *liar.Server, w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, wheel) })
	in := start(t, localUpstream(t, l, host)+"default_template: debian\nlisten: { address: \"127.0.0.1:0\" }\n")
	if _, err := in.Client.PutPolicy(t.Context(), "good", api.PutPolicy{Document: []byte("name: good\nallowed_packages: { python: [ { name: big } ] }\n")}); err != nil {
		t.Fatal(err)
	}
	good, bad := in.tenant(t, "good"), in.tenant(t, "mallory")
	if _, err := good.round(t.Context()); err != nil { // the first one fills caches
		t.Fatal(err)
	}
	alone := good.rounds(t, length/4)
	worst := bad.begin(t)
	over, end := context.WithCancel(t.Context())
	defer end()
	var watch sync.WaitGroup
	var most int64
	watch.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for over.Err() == nil {
			most = max(most, resident(t, in.Daemon.Process.Pid, "RssAnon:"))
			<-tick.C
		}
	})
	beside := good.rounds(t, length-length/4)
	end()
	watch.Wait()
	did := worst()
	t.Logf("the daemon had at most %d MiB; what the hostile tenant did: %v", most>>20, did)
	if most > tenantsMemory {
		t.Errorf("the daemon had %d MiB; it may have %d", most>>20, tenantsMemory>>20)
	}
	for i, what := range []string{"create", "install"} {
		ratio := float64(p99(beside[i])) / float64(p99(alone[i]))
		t.Logf("%s: p99 %v alone (%d), %v beside a hostile tenant (%d): %.2f times", what, p99(alone[i]), len(alone[i]), p99(beside[i]), len(beside[i]), ratio)
		t.Logf("%s: deciles alone %v, beside %v", what, deciles(alone[i]), deciles(beside[i]))
		if math.IsNaN(ratio) || ratio > tenantsRatio {
			t.Errorf("the p99 of %s grew %.2f times; it may grow %d", what, ratio, tenantsRatio)
		}
	}
	for _, what := range []string{"stalls", "lists", "makes", "idles"} {
		if least := leastDone * int(length.Minutes()+1); did[what] < least {
			t.Errorf("the hostile tenant did %d %s; inconclusive below %d", did[what], what, least)
		}
	}
}

// p99 is what a hundredth of the times exceed, at most.
func p99(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[(len(all)*99+99)/100-1]
}

// deciles are the times that a tenth, two tenths and so on of all stay below.
func deciles(all []time.Duration) (at []time.Duration) {
	all = slices.Sorted(slices.Values(all))
	for i := range 11 {
		if len(all) > 0 {
			at = append(at, all[i*(len(all)-1)/10].Round(time.Millisecond))
		}
	}
	return at
}

// tenant is a token and what was done with it.
type tenant struct {
	*client.Client
	url, secret string

	mu  sync.Mutex // guards did
	did map[string]int
}

func (in *installation) tenant(t *testing.T, name string) *tenant {
	t.Helper()
	c, url, key := in.clientOf(t, api.MakeToken{Name: name, Policy: "good", Quota: api.Quota{Sandboxes: 4}})
	return &tenant{Client: c, url: url, secret: key, did: map[string]int{}}
}

func (n *tenant) count(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.did[what]++
}

// rounds are how long creates and installs took, one after the other.
func (n *tenant) rounds(t *testing.T, length time.Duration) (took [2][]time.Duration) {
	t.Helper()
	over, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	for over.Err() == nil {
		one, err := n.round(t.Context())
		if err != nil {
			t.Errorf("the good tenant: %v", err)
			return took
		}
		took[0], took[1] = append(took[0], one[0]), append(took[1], one[1])
	}
	return took
}

// round makes a sandbox, installs into it, and takes it away.
func (n *tenant) round(ctx context.Context) (took [2]time.Duration, err error) {
	began := time.Now()
	sb, err := n.CreateSandbox(ctx, api.CreateSandbox{Linger: true})
	if err != nil {
		return took, err
	}
	took[0], began = time.Since(began), time.Now()
	err = n.execute(ctx, sb.ID, "python3", "-m", "pip", "install", "--no-cache-dir", "big")
	took[1] = time.Since(began)
	if derr := n.DestroySandbox(ctx, sb.ID); err == nil {
		err = derr
	}
	return took, err
}

func (n *tenant) execute(ctx context.Context, sandbox string, argv ...string) error {
	cmd, err := n.StartCommand(ctx, sandbox, api.StartCommand{Argv: argv})
	if err != nil {
		return err
	}
	at, err := n.Attach(ctx, sandbox, cmd.ID, 0)
	if err != nil {
		return err
	}
	defer at.Close()
	var said bytes.Buffer
	for event, err := range at.Events() {
		if err != nil {
			return err
		}
		said.Write(event.Stderr)
		if event.Exit != nil {
			if event.Exit.Code != 0 {
				return fmt.Errorf("%v ended with %d: %s", argv, event.Exit.Code, said.String())
			}
			return nil
		}
	}
	return io.ErrUnexpectedEOF
}

// hostile names the environment's variable that makes a process of this binary the
// hostile tenant: an address and a token.
const hostile = "COFFERDAM_HOSTILE"

// TestMain is the hostile tenant's beginning too.
func TestMain(m *testing.M) {
	if url, secret, ok := strings.Cut(os.Getenv(hostile), " "); ok {
		if err := beHostile(url, secret); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// begin lets the tenant do its worst, in a process of its own. That runs only where
// nobody else wants a processor: a tenant's own work is done on its own machine, and
// only what it makes the host do counts. stop ends it, and tells how often it did what.
func (n *tenant) begin(t *testing.T) (stop func() map[string]int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "chrt", "--idle", "0", self)
	cmd.Env = append(os.Environ(), hostile+"="+n.url+" "+n.secret)
	var said, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &wrong
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() map[string]int {
		_ = cmd.Process.Signal(os.Interrupt) // what it says and how it ends tells whether it was there
		if err := cmd.Wait(); err != nil {
			t.Fatalf("the hostile tenant: %v\n%s", err, wrong.String())
		}
		var did map[string]int
		if err := json.Unmarshal(said.Bytes(), &did); err != nil {
			t.Fatalf("the hostile tenant said %q: %v", said.String(), err)
		}
		return did
	}
}

// beHostile does a tenant's worst until it is interrupted, and says how often it did
// what.
func beHostile(url, secret string) error {
	c, err := client.Open(client.Remote{URL: url, Token: secret})
	if err != nil {
		return err
	}
	n := &tenant{Client: c, url: url, secret: secret, did: map[string]int{}}
	over, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var all sync.WaitGroup
	for _, do := range []func(context.Context){n.stalls, n.lists, n.makes, n.idles} {
		all.Go(func() { do(over) })
	}
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(n.did)
}

// stalls sends bodies of thirty megabytes that do not end, twenty at one time.
func (n *tenant) stalls(ctx context.Context) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for ctx.Err() == nil {
				body, writer := io.Pipe()
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url+"/v1/sandboxes", body)
				if err != nil {
					return
				}
				r.Header.Set("Authorization", "Bearer "+n.secret)
				go func() {
					_, _ = io.WriteString(writer, `{"task":"`)
					for range 30 {
						_, _ = writer.Write(bytes.Repeat([]byte("x"), 1<<20))
					}
				}()
				if res, err := http.DefaultClient.Do(r); err == nil {
					res.Body.Close()
				}
				_ = writer.Close()
				n.count("stalls")
			}
		})
	}
	all.Wait()
}

// lists fills a directory with links, and asks for its list without reading it.
func (n *tenant) lists(ctx context.Context) {
	const fill = `
import os
os.makedirs("/tmp/l")
for i in range(20000):
    os.symlink("x" * 3000, "/tmp/l/" + "y" * 200 + str(i))
`
	var sb api.Sandbox
	var err error
	for sb, err = n.CreateSandbox(ctx, api.CreateSandbox{Linger: true}); err != nil; sb, err = n.CreateSandbox(ctx, api.CreateSandbox{Linger: true}) {
		if ctx.Err() != nil { // those that are only made take all that it may have, at times
			return
		}
	}
	if n.execute(ctx, sb.ID, "python3", "-c", fill) != nil {
		return
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				asked, cancel := context.WithTimeout(ctx, 5*time.Second)
				for range n.ListFiles(asked, sb.ID, client.File{Path: "/tmp/l"}, 1) {
					<-asked.Done()
				}
				cancel()
				n.count("lists")
			}
		})
	}
	all.Wait()
}

// makes asks for more sandboxes than it may have, all the time.
func (n *tenant) makes(ctx context.Context) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				if sb, err := n.CreateSandbox(ctx, api.CreateSandbox{Linger: true}); err == nil {
					_ = n.DestroySandbox(ctx, sb.ID)
				}
				n.count("makes")
			}
		})
	}
	all.Wait()
}

// idles opens connections on which nothing is said, as many as there may be, from
// another address than the good tenant's.
func (n *tenant) idles(ctx context.Context) {
	address := strings.TrimPrefix(strings.TrimPrefix(n.url, "http://"), "https://")
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	dialer := &net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for ctx.Err() == nil {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		if open = append(open, c); len(open) > 2_000 {
			open[0].Close()
			open = open[1:]
		}
		n.count("idles")
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}
