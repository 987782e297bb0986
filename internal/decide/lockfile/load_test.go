package lockfile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func source(name, sample string) lockfile.Source {
	return lockfile.Source{Name: name, Data: []byte(fill(sample))}
}

func TestGive(t *testing.T) {
	near := source("/project/conf/requirements.txt", "a==1.0 --hash=sha256:{a256}")
	other := source("/else/go.sum", goSum)
	named := policy.LockRules{Given: true, Files: []string{"requirements.txt", "/else/go.sum"}, Mode: policy.LockPrefer, Trust: true}
	both := []lockfile.Source{near, other}
	for name, c := range map[string]struct {
		rules   policy.LockRules
		mode    policy.LockMode
		sources []lockfile.Source
		want    policy.LockMode // "": nothing, or what the error says
		err     string
	}{
		"none":                {},
		"only by the run":     {sources: both, want: policy.LockFrozen},
		"preferred by it":     {sources: both, mode: policy.LockPrefer, want: policy.LockPrefer},
		"named":               {rules: named, sources: both, want: policy.LockPrefer},
		"tightened":           {rules: named, sources: both, mode: policy.LockFrozen, want: policy.LockFrozen},
		"brought":             {rules: policy.LockRules{Given: true, Mode: policy.LockFrozen}, sources: both, want: policy.LockFrozen},
		"not brought":         {rules: policy.LockRules{Given: true}, err: "names none"},
		"one is missing":      {rules: named, sources: both[:1], err: "names the lockfile /else/go.sum"},
		"another of the name": {rules: named, sources: []lockfile.Source{other, source("/project/requirements.txt", "")}, err: "names the lockfile requirements.txt"},
		"loosened":            {rules: policy.LockRules{Given: true, Mode: policy.LockFrozen}, mode: policy.LockPrefer, sources: both, err: "can't loosen"},
		"a mode alone":        {mode: policy.LockFrozen, err: "but no lockfile"},
		"no mode":             {mode: "loose", sources: both, err: "unknown lock mode"},
	} {
		got, err := lockfile.Give("/project/conf/policy.yaml", c.rules, c.mode, c.sources)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) || (!errors.Is(err, fault.ErrInvalid) && !errors.Is(err, fault.ErrForbidden)) {
				t.Errorf("%s: %v, %v; want %q", name, got, err, c.err)
			}
		case err != nil || (got == nil) != (c.want == ""):
			t.Errorf("%s: %v, %v", name, got, err)
		case got != nil && (got.Mode != c.want || got.Trust != c.rules.Trust):
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestKept: what was kept reads as what was given.
func TestKept(t *testing.T) {
	g, err := lockfile.Give("", policy.LockRules{Given: true, Trust: true}, "", []lockfile.Source{source("/p/go.sum", goSum), source("/p/uv.lock", uvLock)})
	if err != nil {
		t.Fatal(err)
	}
	set, err := g.Set()
	if err != nil {
		t.Fatal(err)
	}
	data, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := lockfile.Decode(data)
	if err != nil || again.Digest() != set.Digest() || !again.Trusted() || again.Mode() != policy.LockFrozen {
		t.Fatalf("%+v, %v", again, err)
	}
	if lock := again.For(pkgref.Ref{Ecosystem: pkgref.Python, Name: "foo-bar"}); lock == nil || len(lock.Pins) != 2 {
		t.Errorf("foo-bar: %+v", lock)
	}
	for _, bad := range []string{"", "{}", `{"sources":[{"name":"x"}]}`} {
		if _, err := lockfile.Decode([]byte(bad)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestTotal: many lockfiles together have a limit too.
func TestTotal(t *testing.T) {
	blank := lockfile.Source{Name: "/a.txt", Data: []byte(strings.Repeat("\n", lockfile.MaxBytes))}
	g := lockfile.Given{Sources: []lockfile.Source{blank, blank, blank}}
	if _, err := g.Set(); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "together") {
		t.Errorf("got %v", err)
	}
}

// TestOnlyMetadata: a release of which go.sum knows the go.mod alone lets no
// file in, whatever its digests are.
func TestOnlyMetadata(t *testing.T) {
	f := parsed(t, "go.sum", "example.com/a v1.0.0/go.mod {ah1}\nexample.com/b v1.0.0 {bh1}\n")
	set, err := lockfile.NewSet(policy.LockRules{Trust: true}, []*lockfile.Lockfile{f})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("p.yaml", []byte("packages:\n  default: allow\n"))
	if err != nil {
		t.Fatal(err)
	}
	decide := func(name string, facts policy.FileFacts) policy.Decision {
		ref := pkgref.Ref{Ecosystem: pkgref.Go, Name: name}
		facts.Version = "v1.0.0"
		return p.Decide(time.Now(), policy.Input{Subject: policy.Subject{Package: ref, Lock: set.For(ref)}, FileFacts: facts})
	}
	zip := func(digests ...string) policy.FileFacts {
		return policy.FileFacts{Kind: policy.KindPackage, Digests: digests, Complete: true}
	}
	if d := decide("example.com/b", zip(h1('b'))); !d.Allowed() {
		t.Errorf("a locked zip: %+v", d)
	}
	for _, digests := range [][]string{nil, {h1('a')}, {h1('c'), "sha256:" + hex256('a')}} {
		if d := decide("example.com/a", zip(digests...)); d.Allowed() {
			t.Errorf("a zip with the digests %q of a release that go.sum has no zip of: %+v", digests, d)
		}
	}
	if d := decide("example.com/b", zip(h1('c'))); d.Allowed() {
		t.Errorf("another zip than the locked one: %+v", d)
	}
	if d := decide("example.com/a", policy.FileFacts{Kind: policy.KindMetadata, Digests: []string{h1('a')}}); !d.Allowed() {
		t.Errorf("its go.mod: %+v", d)
	}
}
