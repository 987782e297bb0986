package gateway_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// judges puts the real controller behind the gateway, under a policy and a clock that
// can be moved, and gives its log.
func (b *bench) judges(document string) (log *audit.FileLog, ahead *atomic.Int64) {
	b.t.Helper()
	return b.judgesBy(document, nil)
}

// judgesBy is judges with imported facts.
func (b *bench) judgesBy(document string, facts advisory.Source) (log *audit.FileLog, ahead *atomic.Int64) {
	b.t.Helper()
	log, err := audit.Open(b.t.TempDir(), audit.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { log.Close() })
	p, err := policy.Parse("p.yaml", []byte(document))
	if err != nil {
		b.t.Fatal(err)
	}
	ahead = new(atomic.Int64) // of the host's
	c := admission.New(admission.Config{
		Log: log, Trust: b.door.Trust, Advisories: facts, Clock: clock.Plain(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }),
	})
	if err := c.Register(admission.Run{Sandbox: sandboxA, Run: "run-a", Policy: p}); err != nil {
		b.t.Fatal(err)
	}
	b.judge = c
	b.restart()
	return log, ahead
}

// TestAYoungModuleAdmitsNothing: its go.mod is read, as resolvers must, but what it
// requires is not let in before the module itself could be. The age is the checksum
// database's.
func TestAYoungModuleAdmitsNothing(t *testing.T) {
	child := golangtest.New(t, "corp.example/child", "v1.0.0")
	root := golangtest.Pack(t, "corp.example/root", "v1.0.0",
		[2]string{"go.mod", "module corp.example/root\n\nrequire corp.example/child v1.0.0\n"}, [2]string{"p.go", "package p\n"})
	b, _ := newGoBench(t, root, child)
	_, clock := b.judges(`
packages: { default: deny, min_release_age: 2h }
allowed_packages: { go: [ { name: corp.example/root, with_dependencies: true } ] }
`)
	mod, zip := goFiles(t, root)[1], goFiles(t, child)[0]
	if a := b.get(mod); a.StatusCode != http.StatusOK {
		t.Fatalf("the go.mod can't be read: %s", status(a))
	}
	if a := b.get(zip); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "not on the allowlist") {
		t.Errorf("what it requires: %s", status(a))
	}
	clock.Store(int64(3 * time.Hour)) // positive control: it has ripened
	if a := b.get(mod); a.StatusCode != http.StatusOK {
		t.Fatal(status(a))
	}
	if a := b.get(zip); a.StatusCode != http.StatusOK {
		t.Errorf("what it requires, once it may be had: %s", status(a))
	}
}

// recorded are the records of what became of a guest's requests. Questions to
// upstreams for them are on record besides.
func recorded(tb testing.TB, log *audit.FileLog) (all []audit.Record) {
	tb.Helper()
	for r, err := range log.Records(tb.Context(), audit.Filter{}) {
		if err != nil {
			tb.Fatal(err)
		}
		if r.Outcome == audit.Asked {
			continue
		}
		all = append(all, r)
	}
	return all
}

// goesIn asks for each path twice: what is answered has a record of its own by then,
// of its digest where it is a release's, and one for both.
func (b *bench) goesIn(log *audit.FileLog, outcome audit.Outcome, paths ...string) {
	b.t.Helper()
	for _, path := range paths {
		before := len(recorded(b.t, log))
		a := b.get(path)
		if a.StatusCode != http.StatusOK || a.body == "" {
			b.t.Errorf("%s: %s", path, status(a))
			continue
		}
		appended := recorded(b.t, log)[before:]
		if len(appended) != 1 || appended[0].Outcome != outcome || appended[0].Run != "run-a" || appended[0].Policy == "" {
			b.t.Errorf("%s went in with these records: %+v", path, appended)
			continue
		}
		if r := appended[0]; r.Detail["index_digest"] == "" && "sha256:"+r.SHA256 != sha256Of([]byte(a.body)) {
			b.t.Errorf("%s: the record is of other bytes: %+v", path, r)
		}
		b.get(path)
		if again := recorded(b.t, log)[before+1:]; outcome == audit.Shown && len(again) != 0 {
			b.t.Errorf("%s, asked for again: %+v", path, again)
		}
	}
}

// TestNothingGoesInWithoutARecord: whatever kind of page, metadata, attestation or
// part of a log a guest is sent, its record is in the log when the answer is there.
func TestNothingGoesInWithoutARecord(t *testing.T) {
	t.Run("python", func(t *testing.T) {
		b := newBench(t, nil)
		foo := pypitest.Wheel(t, "foo", "1.0", "bar")
		b.publish(foo)
		log, _ := b.judges("packages: { default: allow }")
		b.goesIn(log, audit.Shown, "/simple/foo/", "/p/"+foo.File+".metadata")
		b.goesIn(log, audit.Served, "/p/"+foo.File)
	})
	t.Run("node", func(t *testing.T) {
		b := newNodeBench(t, nil)
		foo := npmtest.Pack(t, "foo", "1.0.0", nil)
		b.nodePublish(indexHost, nil, foo)
		b.registry.Script(indexHost+"/-/npm/v1/keys", liar.Body("application/json", []byte(`{"keys":[]}`)))
		b.registry.Script(indexHost+"/-/npm/v1/attestations/foo@1.0.0", liar.Body("application/json", []byte(`{"attestations":[]}`)))
		log, _ := b.judges("packages: { default: allow }")
		b.goesIn(log, audit.Shown, "/foo", "/-/npm/v1/keys", "/-/npm/v1/attestations/foo@1.0.0")
		b.goesIn(log, audit.Served, foo.Path())
	})
	t.Run("go", func(t *testing.T) {
		foo := golangtest.New(t, "corp.example/foo", "v1.0.0")
		b, _ := newGoBench(t, foo)
		b.registry.Script(indexHost+"/corp.example/foo/@latest", liar.Body("application/json", []byte(`{"Version":"v1.0.0"}`)))
		log, _ := b.judges("packages: { default: allow }")
		files := goFiles(t, foo)
		b.goesIn(log, audit.Shown, files[1], files[2], files[3], "/corp.example/foo/@v/list", "/corp.example/foo/@latest", logPath+"latest", logPath+"tile/8/0/000.p/1")
		b.goesIn(log, audit.Served, files[0])
	})
	t.Run("go on hold", func(t *testing.T) {
		foo := golangtest.New(t, "corp.example/foo", "v1.0.0")
		b, _ := newGoBench(t, foo)
		log, _ := b.judges("packages: { default: hold }")
		b.goesIn(log, audit.Shown, goFiles(t, foo)[1])
	})
}

// TestWhatCannotBeRecordedDoesNotGoIn: the same, where the daemon can't write.
func TestWhatCannotBeRecordedDoesNotGoIn(t *testing.T) {
	foo := golangtest.New(t, "corp.example/foo", "v1.0.0")
	b, _ := newGoBench(t, foo)
	b.door.unshown = errBroken
	for _, path := range append(goFiles(t, foo)[1:], "/corp.example/foo/@latest", logPath+"latest", logPath+"tile/8/0/000.p/1") {
		if a := b.get(path); a.StatusCode == http.StatusOK {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	p := newBench(t, nil)
	dist := pypitest.Wheel(t, "foo", "1.0")
	p.publish(dist)
	p.door.unshown = errBroken
	if a := p.get("/p/" + dist.File + ".metadata"); a.StatusCode == http.StatusOK {
		t.Errorf("a wheel's metadata: %s", status(a))
	}
}
