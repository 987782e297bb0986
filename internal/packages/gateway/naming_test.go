package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// carried is a text that a guest would like to have carried out, the i-th of many.
func carried(i int) string { return fmt.Sprintf("stolen%03d", i) }

// heard are the paths of what upstreams were asked for since some request, in which the texts
// are.
func (b *bench) heard(since int) (paths []string) {
	for _, r := range b.registry.Requests()[since:] {
		if strings.Contains(r.Path, "stolen") {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// unrecorded are those of them that no question on record has.
func (b *bench) unrecorded(paths []string) (missing []string) {
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	for _, path := range paths {
		found := false
		for _, q := range b.door.asked {
			found = found || q.Sandbox == sandboxA && strings.HasSuffix(q.URL, path)
		}
		if !found {
			missing = append(missing, path)
		}
	}
	return missing
}

// TestTextsThatLeave: of each form of a request whose path has a text of the guest's, so few
// texts reach an upstream as there may be names that lead to nothing, and each is on record.
// Texts of a package that the policy allows count as names do. The control is that some do
// reach it, or that no such form has one.
func TestTextsThatLeave(t *testing.T) {
	const most, tries = 5, 20
	goBench := func(t *testing.T) *bench {
		t.Helper()
		b, _ := newGoBench(t, golangtest.New(t, "corp.example/foo", "v1.0.0"))
		return b
	}
	nodeBench := func(t *testing.T) *bench {
		t.Helper()
		b := newNodeBench(t, nil)
		b.nodePublish(indexHost, nil, npmtest.Pack(t, "foo", "1.0.0", nil))
		return b
	}
	pythonBench := func(t *testing.T) *bench {
		t.Helper()
		b := newBench(t, nil)
		b.publish(pypitest.Wheel(t, "foo", "1.0"))
		return b
	}
	for _, c := range []struct {
		name  string
		make  func(*testing.T) *bench
		path  string // TEXT is the text's place
		leave bool   // some texts may reach an upstream
	}{
		{"a page", pythonBench, "/simple/TEXT/", true},
		{"a wheel of no project", pythonBench, "/simple/TEXT-1.0-py3-none-any.whl", true},
		{"a version's wheel", pythonBench, "/p/foo-1.0+TEXT-py3-none-any.whl", false},
		{"a version's source", pythonBench, "/p/foo-1.0+TEXT.tar.gz", false},
		{"metadata", pythonBench, "/p/foo-1.0+TEXT-py3-none-any.whl.metadata", false},
		{"a signature", pythonBench, "/p/foo-1.0+TEXT-py3-none-any.whl.asc", false},
		{"a file's folder", pythonBench, "/TEXT/foo-1.0-py3-none-any.whl", false},
		{"a packument", nodeBench, "/TEXT", true},
		{"a scope", nodeBench, "/@TEXT/foo", true},
		{"a manifest", nodeBench, "/foo/1.0.0-TEXT", false},
		{"a tag", nodeBench, "/foo/TEXT", false},
		{"dist-tags", nodeBench, "/-/package/TEXT/dist-tags", true},
		{"a dist-tag", nodeBench, "/-/package/foo/dist-tags/TEXT", false},
		{"a tarball", nodeBench, "/foo/-/foo-1.0.0-TEXT.tgz", false},
		{"a tarball of no package", nodeBench, "/TEXT/-/TEXT-1.0.0.tgz", true},
		{"attestations", nodeBench, "/-/npm/v1/attestations/foo@1.0.0-TEXT", false},
		{"attestations of no package", nodeBench, "/-/npm/v1/attestations/TEXT@1.0.0", true},
		{"keys", nodeBench, "/-/npm/v1/keys/TEXT", false},
		{"a search", nodeBench, "/-/v1/search?text=TEXT", false},
		{"an audit", nodeBench, "/-/npm/v1/security/audits/TEXT", false},
		{"a list", goBench, "/corp.example/TEXT/@v/list", true},
		{"the latest", goBench, "/corp.example/TEXT/@latest", true},
		{"a branch", goBench, "/corp.example/foo/@v/TEXT.info", true},
		{"a version's info", goBench, "/corp.example/foo/@v/v1.0.1-TEXT.info", true},
		{"a pseudo-version's info", goBench, "/corp.example/foo/@v/v0.0.0-20260102030405-0123456789ab.TEXT.info", true},
		{"a version's mod", goBench, "/corp.example/foo/@v/v1.0.1-TEXT.mod", true},
		{"a version's zip", goBench, "/corp.example/foo/@v/v1.0.1-TEXT.zip", true},
		{"a lookup", goBench, logPath + "lookup/corp.example/foo@v1.0.1-TEXT", true},
		{"a lookup of no module", goBench, logPath + "lookup/corp.example/TEXT@v1.0.0", true},
		{"a tile", goBench, logPath + "tile/8/0/TEXT", false},
		{"another log", goBench, "/sumdb/TEXT.example/lookup/corp.example/foo@v1.0.0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := c.make(t)
			b.cfg.Limits.RefusedNames = most
			b.restart()
			b.door.admits("foo", "corp.example/foo")
			since := len(b.registry.Requests())
			for i := range tries {
				b.get(strings.ReplaceAll(c.path, "TEXT", carried(i)))
			}
			paths := b.heard(since)
			texts := map[string]bool{}
			for i := range tries {
				if slices.ContainsFunc(paths, func(p string) bool { return strings.Contains(p, carried(i)) }) {
					texts[carried(i)] = true
				}
			}
			if len(texts) > most || (len(texts) > 0) != c.leave {
				t.Errorf("%d texts reached an upstream; there may be %d: %q", len(texts), most, paths)
			}
			if missing := b.unrecorded(paths); len(missing) > 0 {
				t.Errorf("not on record: %q", missing)
			}
		})
	}
}

// TestListedVersionsAreNotCounted: a guest that has used up what may lead to nothing still gets
// what a module's list has.
func TestListedVersionsAreNotCounted(t *testing.T) {
	one, two := golangtest.New(t, "corp.example/foo", "v1.0.0"), golangtest.New(t, "corp.example/foo", "v1.1.0")
	b, _ := newGoBench(t, one, two)
	b.cfg.Limits.RefusedNames = 2
	b.restart()
	b.door.admits("corp.example/foo")
	for i := range 4 {
		b.get("/corp.example/foo/@v/" + carried(i) + ".info")
	}
	if n := len(b.heard(0)); n != 2 {
		t.Fatalf("INCONCLUSIVE: %d texts left", n)
	}
	for _, m := range []golangtest.Module{one, two} {
		for _, path := range goFiles(t, m) {
			if a := b.get(path); a.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", path, status(a))
			}
		}
	}
}

// TestNamesThatLeftAreOnRecord: a name that went to an upstream is on record before it does,
// whatever becomes of its client: one that waits, one that has gone, and what `cofferdam
// request` asks for.
func TestNamesThatLeftAreOnRecord(t *testing.T) {
	for _, waits := range []bool{true, false} {
		b := newBench(t, func(c *gateway.Config) { c.Limits.Upstream.HeaderWait = time.Minute })
		asked, release := make(chan struct{}), make(chan struct{})
		onRecord := false
		b.page("stolen-name", func(s *liar.Server, w http.ResponseWriter, r *http.Request) {
			onRecord = len(b.unrecorded([]string{"/simple/stolen-name/"})) == 0
			close(asked)
			<-release
			liar.Status(404)(s, w, r)
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+indexHost+"/simple/stolen-name/", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if a, err := b.client(sandboxA).Do(r); err == nil {
				_ = a.Body.Close()
			}
		}()
		<-asked
		if !waits {
			cancel()
			<-done
		}
		close(release)
		<-done
		cancel()
		if !onRecord {
			t.Errorf("waits %t: the name had left when nothing was on record", waits)
		}
	}
	b := newBench(t, nil)
	for i := range 3 {
		if _, err := b.gateway.Propose(t.Context(), sandboxA, channel.Request{Because: "b", Items: []channel.RequestItem{{Ecosystem: "python", Name: carried(i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	paths := b.heard(0)
	if missing := b.unrecorded(paths); len(paths) != 3 || len(missing) > 0 {
		t.Errorf("the upstream heard %q, not on record: %q", paths, missing)
	}
}

// TestNoRecordNoQuestion: what can't be put on record is not asked.
func TestNoRecordNoQuestion(t *testing.T) {
	b := newBench(t, nil)
	b.door.unasked = errBroken
	a := b.get("/simple/stolen-name/")
	if paths := b.heard(0); len(paths) != 0 || a.StatusCode == http.StatusOK {
		t.Errorf("%s; the upstream heard %q", status(a), paths)
	}
	b.door.unasked = nil
	b.get("/simple/stolen-name/")
	if paths := b.heard(0); len(paths) != 1 { // the control
		t.Errorf("the upstream heard %q", paths)
	}
}

// TestAGuestFillsNoLog: a guest that asks for the same missing package again and again has a
// few lines of the operator's log. The control is a log that is made in another way.
func TestAGuestFillsNoLog(t *testing.T) {
	for limited, most := range map[bool]int{true: 20, false: 1_000} {
		var out lockedBuffer
		b := newBench(t, func(c *gateway.Config) {
			c.Log = slog.New(slog.NewTextHandler(&out, nil))
			if limited {
				c.Log = telemetry.NewLogger(&out, "", "")
			}
		})
		for range 100 {
			b.get("/simple/missing/")
		}
		n := strings.Count(out.String(), "missing")
		if n > most || !limited && n < 100 {
			t.Errorf("limited %t: %d lines", limited, n)
		}
	}
}

// lockedBuffer is a buffer that several write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
