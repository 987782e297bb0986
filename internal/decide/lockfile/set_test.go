package lockfile_test

import (
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func parsed(t *testing.T, name, sample string) *lockfile.Lockfile {
	t.Helper()
	f, err := lockfile.Parse(name, []byte(fill(sample)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSet(t *testing.T) {
	one := parsed(t, "requirements.txt", "a==1.0 --hash=sha256:{a256}")
	two := parsed(t, "dev.txt", "a==2.0 --hash=sha256:{b256}\nb==1.0 --hash=sha256:{c256}")
	sum := parsed(t, "go.sum", goSum)
	s, err := lockfile.NewSet(policy.LockRules{Trust: true}, []*lockfile.Lockfile{one, two, sum, one})
	if err != nil {
		t.Fatal(err)
	}
	lock := s.For(pkgref.Ref{Ecosystem: pkgref.Python, Name: "a"})
	if lock == nil || lock.Mode != policy.LockFrozen || !lock.Trusted || len(lock.Pins) != 2 {
		t.Errorf("python a: %+v", lock)
	}
	if lock := s.For(pkgref.Ref{Ecosystem: pkgref.Python, Name: "c"}); lock == nil || len(lock.Pins) != 0 {
		t.Errorf("python c, which is outside: %+v", lock)
	}
	if lock := s.For(pkgref.Ref{Ecosystem: pkgref.Node, Name: "a"}); lock != nil {
		t.Errorf("node has no lockfile: %+v", lock)
	}
	if len(s.Files()) != 3 || s.Mode() != policy.LockFrozen || !s.Trusted() {
		t.Errorf("set: %+v", s)
	}
}

// TestSetDigest: the order does not matter; everything else does.
func TestSetDigest(t *testing.T) {
	one := parsed(t, "requirements.txt", "a==1.0 --hash=sha256:{a256}")
	two := parsed(t, "requirements.txt", "a==2.0 --hash=sha256:{b256}")
	digest := func(rules policy.LockRules, files ...*lockfile.Lockfile) string {
		s, err := lockfile.NewSet(rules, files)
		if err != nil {
			t.Fatal(err)
		}
		return s.Digest()
	}
	plain := digest(policy.LockRules{}, one, two)
	if plain != digest(policy.LockRules{Mode: policy.LockFrozen}, two, one, two) {
		t.Error("the order, a repetition or the spelt-out default changes the digest")
	}
	for name, other := range map[string]string{
		"mode": digest(policy.LockRules{Mode: policy.LockPrefer}, one, two), "trust": digest(policy.LockRules{Trust: true}, one, two),
		"files": digest(policy.LockRules{}, one),
	} {
		if other == plain {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

// TestOneFileUnderTwoNames: the name says how a file is read, so the same bytes, an
// empty file's above all, are a lockfile of each ecosystem that they are given for.
func TestOneFileUnderTwoNames(t *testing.T) {
	empty, sum := parsed(t, "requirements.txt", ""), parsed(t, "go.sum", "")
	s, err := lockfile.NewSet(policy.LockRules{}, []*lockfile.Lockfile{empty, sum})
	if err != nil {
		t.Fatal(err)
	}
	for _, ecosystem := range []pkgref.Ecosystem{pkgref.Python, pkgref.Go} {
		if s.For(pkgref.Ref{Ecosystem: ecosystem, Name: "a"}) == nil {
			t.Errorf("nothing holds %s", ecosystem)
		}
	}
	other, err := lockfile.NewSet(policy.LockRules{}, []*lockfile.Lockfile{empty})
	alone, err2 := lockfile.NewSet(policy.LockRules{}, []*lockfile.Lockfile{sum})
	if errors.Join(err, err2) != nil || other.Digest() == alone.Digest() || other.Digest() == s.Digest() {
		t.Errorf("%s and %s and %s: %v", other.Digest(), alone.Digest(), s.Digest(), errors.Join(err, err2))
	}
}

func TestSetRefuses(t *testing.T) {
	one := parsed(t, "requirements.txt", "a==1.0 --hash=sha256:{a256}")
	if _, err := lockfile.NewSet(policy.LockRules{Mode: "loose"}, []*lockfile.Lockfile{one}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("an unknown mode: %v", err)
	}
	for _, n := range []int{0, lockfile.MaxFiles + 1} {
		if _, err := lockfile.NewSet(policy.LockRules{}, make([]*lockfile.Lockfile, n)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%d files: %v", n, err)
		}
	}
}
