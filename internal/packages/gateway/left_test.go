package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// lie is something of an upstream's that is not what it should be.
type lie struct {
	bench *bench
	path  string // that the client asks for
	route string // of the upstream
	reply liar.Reply
}

// pythonLie is a page, a file or its metadata; honest is the same without the lie.
func pythonLie(t *testing.T, kind string, honest bool) lie {
	t.Helper()
	b := newBench(t, func(c *gateway.Config) { c.Limits.Upstream.HeaderWait = time.Minute })
	foo, other := pypitest.Wheel(t, "foo", "1.0"), pypitest.Wheel(t, "foo", "1.0", "evil")
	if kind == "archive" && !honest {
		foo.Bytes = []byte("PK not a zip")
	}
	b.publish(foo)
	foo.URL = b.registry.URL(filesHost, "/p/"+foo.File)
	page, path := liar.Body(pypitest.TypeJSON, pypitest.Page(t, "foo", foo)), "/p/"+foo.File
	switch {
	case kind == "page" && honest:
		return lie{b, "/simple/foo/", indexHost + "/simple/foo/", page}
	case kind == "page":
		return lie{b, "/simple/foo/", indexHost + "/simple/foo/", liar.Body(pypitest.TypeJSON, []byte("<html>"))}
	case kind == "metadata" && honest:
		return lie{b, path + ".metadata", filesHost + path + ".metadata", liar.Body("text/plain", foo.Metadata)}
	case kind == "metadata":
		return lie{b, path + ".metadata", filesHost + path + ".metadata", liar.Body("text/plain", other.Metadata)}
	case kind == "file" && !honest:
		return lie{b, path, filesHost + path, liar.Body("application/zip", other.Bytes)}
	}
	return lie{b, path, filesHost + path, liar.Body("application/zip", foo.Bytes)}
}

func nodeLie(t *testing.T, kind string, honest bool) lie {
	t.Helper()
	b := newNodeBench(t, func(b *bench, _ *upstream.Config) { b.cfg.Limits.Upstream.HeaderWait = time.Minute })
	foo, other := npmtest.Pack(t, "foo", "1.0.0", nil), npmtest.Pack(t, "foo", "1.0.0", map[string]any{"description": "another"})
	b.nodePublish(indexHost, nil, foo)
	foo.URL = b.registry.URL(indexHost, foo.Path())
	page := npmtest.Packument(t, "foo", nil, foo)
	switch {
	case kind == "page" && honest:
		return lie{b, "/foo", nodePage(indexHost, "foo"), liar.Body(npmtest.Type, page)}
	case kind == "page":
		return lie{b, "/foo", nodePage(indexHost, "foo"), liar.Body(npmtest.Type, []byte("<html>"))}
	case honest:
		return lie{b, foo.Path(), indexHost + foo.Path(), liar.Body("application/octet-stream", foo.Bytes)}
	}
	return lie{b, foo.Path(), indexHost + foo.Path(), liar.Body("application/octet-stream", other.Bytes)}
}

func goLie(t *testing.T, kind string, honest bool) lie {
	t.Helper()
	foo := golangtest.New(t, "corp.example/foo", "v1.0.0")
	b, _ := newGoBench(t, foo)
	b.cfg.Limits.Upstream.HeaderWait = time.Minute
	paths := map[string]string{"page": "/corp.example/foo/@v/list", "file": "/" + foo.Escaped(t, "zip"), "metadata": "/" + foo.Escaped(t, "mod")}
	path := paths[kind]
	if honest {
		a := golangtest.Proxy(t, foo)[strings.TrimPrefix(path, "/")]
		return lie{b, path, indexHost + path, liar.Body(a.ContentType, a.Body)}
	}
	return lie{b, path, indexHost + path, liar.Body("text/plain; charset=utf-8", []byte("<html>"))}
}

// lateDoor has each request wait before anything is asked of anybody.
type lateDoor struct {
	*fakeDoor
	wait func()
}

func (d *lateDoor) Owner(ctx context.Context, ask door.OwnerAsk) (door.OwnerAnswer, error) {
	d.wait()
	return d.fakeDoor.Owner(ctx, ask)
}

// closing is a client's end of a connection, which tells when it is closed. It takes what the gateway says before the
// client reads it: of TLS's last words of both at once each would wait five seconds for the other to read.
type closing struct {
	net.Conn
	heard net.Conn
	once  sync.Once
	ended chan struct{}
}

// Read implements net.Conn.
func (c *closing) Read(p []byte) (int, error) { return c.heard.Read(p) }

// Close implements net.Conn. The other end has read all that the client said, TLS's last word with it: it is a pipe.
func (c *closing) Close() error {
	err := errors.Join(c.Conn.Close(), c.heard.Close())
	c.once.Do(func() { close(c.ended) })
	return err
}

// visit is a request of a client that may leave.
type visit struct {
	cancel context.CancelFunc
	ended  chan struct{} // the client's end is closed
	served chan struct{} // and is through with the connection
	done   chan struct{} // the client is
}

func (b *bench) visit(path string) *visit {
	b.t.Helper()
	host := indexHost
	if strings.HasPrefix(path, "/p/") {
		host = filesHost
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b.door.caPEM)
	v := &visit{ended: make(chan struct{}), served: make(chan struct{}), done: make(chan struct{})}
	heard, hear := bufferedPair(b.t)
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer hear.Close()
				_, _ = io.Copy(hear, near)
			}()
			go func() {
				defer close(v.served)
				b.gateway.ServeRegistry(far, sandboxA)
			}()
			return &closing{Conn: near, heard: heard, ended: v.ended}, nil
		},
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	v.cancel = cancel
	b.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	go func() {
		defer close(v.done)
		if a, err := transport.RoundTrip(r); err == nil {
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
		}
	}()
	return v
}

// leave has the client go, and returns once the gateway has been told.
func (v *visit) leave() {
	v.cancel()
	<-v.done
	<-v.ended
}

// TestALieIsOnRecordThoughItsClientLeaves: what is wrong with what an upstream gives is recorded as it is for a client that stays,
// once for each request, whenever its client leaves; and a client's leaving alone is no finding.
func TestALieIsOnRecordThoughItsClientLeaves(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, honest bool) lie{
		"python page":     func(t *testing.T, honest bool) lie { t.Helper(); return pythonLie(t, "page", honest) },
		"python file":     func(t *testing.T, honest bool) lie { t.Helper(); return pythonLie(t, "file", honest) },
		"python archive":  func(t *testing.T, honest bool) lie { t.Helper(); return pythonLie(t, "archive", honest) },
		"python metadata": func(t *testing.T, honest bool) lie { t.Helper(); return pythonLie(t, "metadata", honest) },
		"npm page":        func(t *testing.T, honest bool) lie { t.Helper(); return nodeLie(t, "page", honest) },
		"npm file":        func(t *testing.T, honest bool) lie { t.Helper(); return nodeLie(t, "file", honest) },
		"go page":         func(t *testing.T, honest bool) lie { t.Helper(); return goLie(t, "page", honest) },
		"go file":         func(t *testing.T, honest bool) lie { t.Helper(); return goLie(t, "file", honest) },
		"go metadata":     func(t *testing.T, honest bool) lie { t.Helper(); return goLie(t, "metadata", honest) },
	} {
		for _, when := range []string{"before", "during", "after", "two during", "one of two"} {
			for _, honest := range []bool{false, true} {
				truth := map[bool]string{true: " honest", false: ""}[honest]
				t.Run(name+" "+when+truth, func(t *testing.T) {
					l := make(t, honest)
					requests := l.leaving(t, when)
					want := requests
					if honest {
						want = 0
					}
					if n := len(l.bench.door.Failures()); n != want {
						t.Fatalf("%d of %d requests are on record as failed: %v", n, want, l.bench.door.Failures())
					}
					l.bench.get(l.path) // control: a client that stays
					failures := l.bench.door.Failures()
					if honest != (len(failures) == 0) {
						t.Fatalf("of a client that stays, on record is %v", failures)
					}
					for _, f := range failures {
						if !reflect.DeepEqual(f, failures[len(failures)-1]) || f.Sandbox != sandboxA {
							t.Errorf("on record is %+v, and of a client that stays %+v", f, failures[len(failures)-1])
						}
					}
				})
			}
		}
	}
}

// leaving has clients ask for a lie and leave, and returns how many there were once the gateway is through with them.
func (l lie) leaving(t *testing.T, when string) (requests int) {
	t.Helper()
	b := l.bench
	late := &lateDoor{fakeDoor: b.door, wait: func() {}}
	b.judge = late
	b.restart()
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.registry.Script(l.route, func(s *liar.Server, w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(asked) })
		<-release
		l.reply(s, w, r)
	})
	arrived, judged := make(chan struct{}, 2), make(chan struct{})
	late.wait = func() {
		arrived <- struct{}{}
		<-judged
	}
	visits := []*visit{b.visit(l.path)}
	if strings.Contains(when, "two") {
		visits = append(visits, b.visit(l.path))
	}
	for range visits {
		<-arrived
	}
	if when == "before" {
		visits[0].leave()
	}
	close(judged)
	late.wait = func() {}
	if when != "before" && when != "after" {
		<-asked
		visits[0].leave()
	}
	if when == "two during" {
		visits[1].leave()
	}
	close(release)
	for _, v := range visits {
		<-v.served
	}
	return len(visits)
}

// TestWhatNobodyWaitsForIsOnRecord: a wrong file that was fetched for a client that has only read its metadata, and a wrong page that came
// while an old one was served, are on record once, for the sandbox for which they were asked for. That either can't be had
// is no finding: nobody was refused it.
func TestWhatNobodyWaitsForIsOnRecord(t *testing.T) {
	for _, kind := range []string{"file", "page"} {
		for _, wrong := range []bool{true, false} {
			l := pythonLie(t, kind, false)
			b := l.bench
			b.cfg.Limits.Fresh, b.cfg.Limits.Stale = 1, time.Hour
			b.restart()
			first := "/simple/foo/"
			if kind == "file" {
				first = l.path + ".metadata"
			}
			if a := b.get("/simple/foo/"); a.StatusCode != http.StatusOK {
				t.Fatal(status(a))
			}
			before := b.registry.Count(l.route)
			reply := liar.Status(http.StatusBadGateway)
			if wrong {
				reply = l.reply
			}
			b.registry.Script(l.route, reply)
			if a := b.get(first); a.StatusCode != http.StatusOK {
				t.Fatal(status(a))
			}
			b.eventually("it is asked for", func() bool { return b.registry.Count(l.route) > before })
			if wrong {
				b.eventually("it is on record", func() bool { return len(b.door.Failures()) > 0 })
			}
			must(t, b.gateway.Close())
			f := b.door.Failures()
			if !wrong && len(f) != 0 || wrong && (len(f) != 1 || f[0].Sandbox != sandboxA || f[0].Package.Name != "foo") {
				t.Errorf("a %s, wrong %t: on record is %+v", kind, wrong, f)
			}
		}
	}
}
