package gateway_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// alike takes names that begin with "popular" for imitations.
type alike struct{}

func (alike) Facts(p pkgref.Ref) (advisory.Facts, error) {
	if !strings.HasPrefix(p.Name, "popular") {
		return advisory.Facts{}, nil
	}
	return advisory.Facts{Lookalike: &policy.Lookalike{Name: "famous", How: "one letter is added"}}, nil
}

func (alike) Generation() string { return "1" }

// TestALookalikeOfALockfile: where the default is allow, a client that installs from a
// lockfile may ask for a dependency before its parent. What that requires is read first,
// and the request waits for the client's next ones; a look-alike that none of them
// requires is refused.
func TestALookalikeOfALockfile(t *testing.T) {
	b := newNodeBench(t, func(b *bench, _ *upstream.Config) { b.cfg.Limits.QuietTime = time.Second })
	paths := b.nodeTree(map[string]map[string]any{
		"root@1.0.0": {"popular2": "^1.0.0"}, "popular2@1.0.0": nil, "popular3@1.0.0": nil, "other@1.0.0": {"popular3": "*"},
	})
	b.judgesBy("packages: { default: allow }", alike{})
	for at, want := range map[string]int{"popular2@1.0.0": http.StatusOK, "popular3@1.0.0": http.StatusForbidden} {
		var all sync.WaitGroup
		all.Go(func() {
			if a := b.get(paths[at]); a.StatusCode != want {
				t.Errorf("%s: %s", at, status(a))
			}
		})
		all.Go(func() { // at the same time, or later
			if a := b.get(paths["root@1.0.0"]); a.StatusCode != http.StatusOK {
				t.Errorf("its parent: %s", status(a))
			}
		})
		all.Wait()
	}
	if n := b.registry.Count(nodePage(indexHost, "other")); n != 0 {
		t.Errorf("what nobody asks for is read %d times", n)
	}
}

// TestALookalikeWheelOfALockfile is the same where each release has metadata of its own;
// what is denied declares nothing.
func TestALookalikeWheelOfALockfile(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.QuietTime = 50 * time.Millisecond })
	root, bad := pypitest.Wheel(t, "root", "1.0", "popular2"), pypitest.Wheel(t, "bad", "1.0", "popular3")
	child, other := pypitest.Wheel(t, "popular2", "1.0"), pypitest.Wheel(t, "popular3", "1.0")
	for _, d := range []pypitest.Dist{root, bad, child, other} {
		b.publish(d)
	}
	b.judgesBy("packages: { default: allow }\nblocked_packages: { python: [ { name: bad } ] }", alike{})
	if a := b.get("/p/" + child.File); a.StatusCode != http.StatusForbidden {
		t.Errorf("asked for by hand: %s", status(a))
	}
	for path, want := range map[string]int{root.File: http.StatusOK, bad.File: http.StatusForbidden} {
		if a := b.get("/p/" + path); a.StatusCode != want {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	for path, want := range map[string]int{child.File: http.StatusOK, other.File: http.StatusForbidden} {
		if a := b.get("/p/" + path); a.StatusCode != want {
			t.Errorf("%s: %s", path, status(a))
		}
	}
}
