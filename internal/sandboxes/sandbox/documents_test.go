package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// requirements is one pin with a made-up hash.
func requirements(name string) []byte {
	return []byte(name + "==1.0 --hash=sha256:" + strings.Repeat("61", 32) + "\n")
}

func given(path string) *lockfile.Given {
	return &lockfile.Given{Mode: policy.LockFrozen, Sources: []lockfile.Source{{Name: path, Data: requirements("a")}}}
}

func TestLockfilesAreGuarded(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "sub")
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	inRoot, inDeep := filepath.Join(dir, "requirements.txt"), filepath.Join(deep, "requirements.txt")
	for _, f := range []string{inRoot, inDeep} {
		if err := os.WriteFile(f, requirements("a"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rw := []mountpolicy.Mount{{Source: dir, Destination: "/w", ReadWrite: true}}
	twice := given(inRoot)
	twice.Sources = append(twice.Sources, twice.Sources...)
	rules := mountpolicy.Rules{}
	over, err := rules.Lay(t.Context(), rw, decidingFiles(Request{Lock: twice}))
	if err != nil || len(over) != 2 || over[1].Source != inRoot || over[1].Destination != "/w/requirements.txt" || !over[1].ReadOnly {
		t.Errorf("got %+v, %v; want one read-only mount over the lockfile", over, err)
	}
	if over, err := rules.Lay(t.Context(), rw, decidingFiles(Request{Lock: given(inDeep)})); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a lockfile in a subdirectory of a read-write mount: got %v, %v, want a refusal", over, err)
	}
	ro := []mountpolicy.Mount{{Source: dir, Destination: "/w"}}
	if over, err := rules.Lay(t.Context(), ro, decidingFiles(Request{Lock: given(inDeep)})); err != nil || len(over) != 1 {
		t.Errorf("under a read-only mount nothing is needed, got %+v, %v", over, err)
	}
}

// TestLockfilesAreKept: a restarted daemon holds a sandbox to the same lockfiles,
// or does not take it back.
func TestLockfilesAreKept(t *testing.T) {
	d := newDocuments(t.TempDir())
	g := given("/project/requirements.txt")
	set, err := readLock(g)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := d.keepLock("", g, set); err != nil {
			t.Fatal(err)
		}
	}
	back, err := d.readLocks(set.Digest())
	if err != nil || back.Digest() != set.Digest() {
		t.Fatalf("%v, %v", back, err)
	}
	if none, err := d.readLocks(""); none != nil || err != nil {
		t.Errorf("a run without lockfiles: %v, %v", none, err)
	}
	if _, err := d.keepLock("", nil, nil); err != nil {
		t.Errorf("a run without lockfiles: %v", err)
	}

	path := d.lockPath(set.Digest())
	other, err := (&lockfile.Given{Mode: policy.LockPrefer, Sources: g.Sources}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"other rules": other, "no lockfiles": []byte("{}"), "nothing": nil} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if back, err := d.readLocks(set.Digest()); err == nil {
			t.Errorf("%s in the kept file's place: %v", name, back)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.readLocks(set.Digest()); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a file that is gone: %v", err)
	}
}

// TestLockfilesAreDemanded: where the policy speaks of lockfiles, a request
// without any makes no sandbox.
func TestLockfilesAreDemanded(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte("packages:\n  lockfile: { mode: frozen }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkRequest(Request{Policy: p}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("got %v, want a refusal", err)
	}
	if err := checkRequest(Request{Policy: p, Lock: given("/p/requirements.txt")}); err != nil {
		t.Errorf("with a lockfile: %v", err)
	}
}

// TestAPlanWritesNoMount: what nobody has approved runs in a plan (a source
// distribution's build), so it leaves nothing on the host that a later run would
// find, whether the client or the policy names the mount.
func TestAPlanWritesNoMount(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	p, err := policy.Parse("p.yaml", []byte("filesystem: { host_mounts: [ { source: "+theirs+", destination: /data, mode: read_write } ] }\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, planned := range []bool{false, true} {
		got, err := mountpolicy.Rules{}.Lay(t.Context(), askedMounts(Request{Policy: p, Plan: planned, Mounts: []mountpolicy.Mount{{Source: ours, Destination: "/workspace", ReadWrite: true}}}), nil)
		if err != nil || len(got) != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		for _, mount := range got {
			if mount.ReadOnly != planned {
				t.Errorf("plan %v: %+v", planned, mount)
			}
		}
	}
}

// TestOnlyTokensLockfilesAreSwept: of those only what nobody holds or names; and none while it is not known
// who has them, or before the mark is there that tells whose they are.
func TestOnlyTokensLockfilesAreSwept(t *testing.T) {
	unknown := errors.New("the journal can't be read")
	for what, c := range map[string]struct {
		owners []string // who keeps it, one after the other
		held   bool
		named  bool
		err    error
		stays  bool
	}{
		"a token's":                      {owners: []string{"tk"}},
		"two tokens'":                    {owners: []string{"tk", "tk2"}},
		"held":                           {owners: []string{"tk"}, held: true, stays: true},
		"named":                          {owners: []string{"tk"}, named: true, stays: true},
		"nobody knows":                   {owners: []string{"tk"}, err: unknown, stays: true},
		"the host's":                     {owners: []string{""}, stays: true},
		"the host's, and then a token's": {owners: []string{"", "tk"}, stays: true},
		"a token's, and then the host's": {owners: []string{"tk", ""}, stays: true},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDocuments(t.TempDir())
			g := given("/project/requirements.txt")
			set, err := readLock(g)
			if err != nil {
				t.Fatal(err)
			}
			for _, owner := range c.owners {
				release, err := d.keepLock(owner, g, set)
				if err != nil {
					t.Fatal(err)
				}
				release()
				release() // once
			}
			if c.held {
				defer d.holdLock(set.Digest())()
			}
			if err := d.sweepLocks(func() (map[string]bool, error) { return map[string]bool{set.Digest(): c.named}, c.err }); !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			if _, err := d.readLocks(set.Digest()); (err == nil) != c.stays {
				t.Errorf("it stays: %v (%v)", err == nil, err)
			}
		})
	}
}

// TestNobodyWaitsForASweepOfLockfiles: while a sweep reads who has which, lockfiles come, are held and go; and what
// came meanwhile stays, as those who are read may not know of it yet. The control is the next sweep.
func TestNobodyWaitsForASweepOfLockfiles(t *testing.T) {
	d := newDocuments(t.TempDir())
	keep := func(pin string) (digest string, release func()) {
		t.Helper()
		g := given("/project/requirements.txt")
		g.Sources[0].Data = requirements(pin)
		set, err := readLock(g)
		if err != nil {
			t.Fatal(err)
		}
		release, err = d.keepLock("tk", g, set)
		if err != nil {
			t.Fatal(err)
		}
		return set.Digest(), release
	}
	before, release := keep("a") // or there is nothing to sweep
	release()
	reads, goOn := make(chan struct{}), make(chan struct{})
	nobody := func() (map[string]bool, error) { return nil, nil }
	swept := make(chan error, 1)
	go func() {
		swept <- d.sweepLocks(func() (map[string]bool, error) {
			close(reads)
			<-goOn
			return nobody()
		})
	}()
	<-reads
	digest, release := keep("b")
	d.holdLock(digest)()
	release()
	_, release = keep("a") // once more
	release()
	if err := d.sweepLocks(func() (map[string]bool, error) { return map[string]bool{digest: true, before: true}, nil }); err != nil { // another at the same time
		t.Fatal(err)
	}
	close(goOn)
	if err := <-swept; err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{digest, before} {
		if _, err := d.readLocks(one); err != nil {
			t.Errorf("what came while the sweep read is gone: %v", err)
		}
	}
	if err := d.sweepLocks(nobody); err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{digest, before} {
		if _, err := d.readLocks(one); err == nil {
			t.Error("INCONCLUSIVE: it stays for ever")
		}
	}
	if len(d.held)+len(d.released)+d.sweeps != 0 {
		t.Errorf("it remembers %v, %v, %d", d.held, d.released, d.sweeps)
	}
}
