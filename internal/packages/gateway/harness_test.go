package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	indexHost = "index.example"
	filesHost = "files.example"
	sandboxA  = "sb-a"
)

// bench is a gateway between a scripted registry and a door that remembers.
type bench struct {
	t        testing.TB
	registry *liar.Server
	door     *fakeDoor
	judge    door.Door // who decides; nil: the door
	gateway  *gateway.Gateway
	cfg      gateway.Config
}

// newBench publishes a project "probe", from which the file host is learnt.
func newBench(tb testing.TB, change func(*gateway.Config)) *bench {
	tb.Helper()
	b := &bench{t: tb, registry: liar.New(tb, indexHost, filesHost, "evil.example"), door: newDoor(tb)}
	b.publish(pypitest.Wheel(tb, "probe", "1.0"))
	b.cfg = gateway.Config{
		CacheDir:      tb.TempDir(),
		Upstreams:     []upstream.Config{{Ecosystem: pkgref.Python, Index: b.registry.URL(indexHost, "/simple/"), CAPEM: b.registry.CAPEM}},
		ProbeProjects: map[pkgref.Ecosystem][]string{pkgref.Python: {"probe"}},
		Resolver:      b.registry,
		Version:       "test",
		Limits:        testLimits(),
	}
	if change != nil {
		change(&b.cfg)
	}
	b.start()
	return b
}

// testLimits are patient with an answer, so that a machine that is busy is no slow upstream, and ask again soon.
func testLimits() gateway.Limits {
	return gateway.Limits{
		Cache: cache.Limits{Reserve: 1},
		Upstream: upstream.Limits{
			PageBytes: 8 << 20, PageTime: 20 * time.Second, Backoff: time.Millisecond, RetryAfter: time.Second, PaceWindow: 10 * time.Second,
			PaceBytes: 1 << 10, BreakAfter: 1000, HeaderWait: 10 * time.Second,
		},
		FetchAhead: 1,
		LearnAgain: 10 * time.Millisecond,
	}
}

// slowly has replies be too slow soon that are so on purpose, by what they are called.
func slowly(c *gateway.Config, name string) {
	if slices.Contains([]string{"silence", "head drips", "drip"}, name) {
		u := &c.Limits.Upstream
		u.PageTime, u.PaceWindow, u.HeaderWait = 5*time.Second, 50*time.Millisecond, 300*time.Millisecond
	}
}

func (b *bench) start() {
	b.t.Helper()
	var judge door.Door = b.door
	if b.judge != nil {
		judge = b.judge
	}
	g, err := gateway.New(b.cfg, judge)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := g.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.gateway = g
	b.t.Cleanup(func() { _ = g.Close() }) // a test may have closed it
}

// restart is a new process on the same cache.
func (b *bench) restart() {
	b.t.Helper()
	if err := b.gateway.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.start()
}

// publish puts dists of one project on the registry.
func (b *bench) publish(dists ...pypitest.Dist) {
	b.t.Helper()
	for i := range dists {
		d := &dists[i]
		d.URL = b.registry.URL(filesHost, "/p/"+d.File)
		b.registry.Script(filesHost+"/p/"+d.File, liar.Body("application/zip", d.Bytes))
		if d.Metadata != nil {
			b.registry.Script(filesHost+"/p/"+d.File+".metadata", liar.Body("text/plain", d.Metadata))
		}
	}
	b.page(dists[0].Name, liar.Gzip(pypitest.TypeJSON, pypitest.Page(b.t, dists[0].Name, dists...), 1))
}

func (b *bench) page(project string, replies ...liar.Reply) {
	b.registry.Script(indexHost+"/simple/"+project+"/", replies...)
}

// client is an HTTP client inside a sandbox: every name leads to the gateway.
func (b *bench) client(sandbox string) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b.door.caPEM)
	t := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go b.gateway.ServeRegistry(far, sandbox)
			return near, nil
		},
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	b.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type answer struct {
	*http.Response
	body string
}

func (b *bench) do(sandbox, method, url string, header ...string) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := b.client(sandbox).Do(req)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, url, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, url, err)
	}
	return answer{resp, string(body)}
}

func (b *bench) get(path string, header ...string) answer {
	b.t.Helper()
	host := indexHost
	if strings.HasPrefix(path, "/p/") {
		host = filesHost
	}
	return b.do(sandboxA, http.MethodGet, "https://"+host+path, header...)
}

// raw sends bytes over a TLS connection to a name and reads one answer.
func (b *bench) raw(name, request string) answer {
	b.t.Helper()
	return b.pipeline(name, request, 1)[0]
}

// pipeline sends bytes over a TLS connection to a name and reads so many answers.
func (b *bench) pipeline(name, requests string, count int) (answers []answer) {
	b.t.Helper()
	near, far := net.Pipe()
	go b.gateway.ServeRegistry(far, sandboxA)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b.door.caPEM)
	conn := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12})
	defer near.Close()                                    // and not the connection over it: its farewell waits 5 s where nobody reads any more
	go func() { _, _ = io.WriteString(conn, requests) }() // the gateway may answer before it has read all
	in := bufio.NewReader(conn)
	for range count {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			b.t.Fatalf("%.200q: %v", requests, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			b.t.Fatal(err)
		}
		resp.Body.Close()
		answers = append(answers, answer{resp, string(body)})
	}
	return answers
}

// blobs counts what the cache holds, and fails on anything half-written.
func (b *bench) blobs() int {
	b.t.Helper()
	temp, err := os.ReadDir(filepath.Join(b.cfg.CacheDir, "tmp"))
	if err != nil || len(temp) > 0 {
		b.t.Errorf("%d half-written files in the cache (%v)", len(temp), err)
	}
	blobs, err := filepath.Glob(filepath.Join(b.cfg.CacheDir, "blobs", "*", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return len(blobs)
}

// eventually waits for a condition.
func (b *bench) eventually(what string, cond func() bool) {
	b.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			b.t.Fatalf("it never came about that %s", what)
		}
	}
}

func status(a answer) string { return fmt.Sprintf("%s\n%s", a.Status, a.body) }
