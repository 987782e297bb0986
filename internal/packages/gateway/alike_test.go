package gateway_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// alike takes names that begin with "popular" for imitations.
type alike struct{}

func (alike) Facts(p pkgref.Ref) (advisory.Facts, error) {
	if !strings.HasPrefix(p.Name, "popular") {
		return advisory.Facts{}, nil
	}
	return advisory.Facts{Lookalike: &policy.Lookalike{Name: "famous", How: "one letter is added"}}, nil
}

func (alike) Vulnerabilities(pkgref.Ref) (advisory.Vulnerabilities, error) {
	return advisory.Vulnerabilities{}, nil
}

func (alike) Generation() string { return "1" }

// openPolicies let in what no list names; the second has an entry to walk from as well,
// which leads to none of it.
func openPolicies() []string {
	return []string{
		"packages: { default: allow }\n",
		"packages: { default: allow }\nallowed_packages: { python: [ { name: listed, with_dependencies: true } ], node: [ { name: listed, with_dependencies: true } ] }\n",
	}
}

// TestALookalikeOfALockfile: where the default is allow, a client that installs from a
// lockfile may ask for a dependency before its parent. The requirements of that are read first,
// and the request waits for the client's next ones; a look-alike that none of them
// requires is refused.
func TestALookalikeOfALockfile(t *testing.T) {
	for _, document := range openPolicies() {
		lookalikeOfALockfile(t, document)
	}
}

func lookalikeOfALockfile(t *testing.T, document string) {
	t.Helper()
	b := newNodeBench(t, func(b *bench, _ *upstream.Config) { b.cfg.Limits.QuietTime = time.Second })
	paths := b.nodeTree(map[string]map[string]any{
		"root@1.0.0": {"popular2": "^1.0.0"}, "popular2@1.0.0": nil, "popular3@1.0.0": nil, "other@1.0.0": {"popular3": "*"},
	})
	b.judgesBy(document, alike{})
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

// TestALookalikeBeforeItsParent: pip asks for one project of a list after the other, each time for
// its page and for what its release requires, and for the files at the end. The requirements of a
// look-alike are told, and nothing else of its publisher's; the file is let in if something
// requires it by then.
func TestALookalikeBeforeItsParent(t *testing.T) {
	for _, document := range openPolicies() {
		b := newBench(t, func(c *gateway.Config) { c.Limits.QuietTime = 50 * time.Millisecond })
		child, other := pypitest.Wheel(t, "popular2", "1.0", "leaf>=1"), pypitest.Wheel(t, "popular3", "1.0")
		root, leaf := pypitest.Wheel(t, "root", "1.0", "popular2"), pypitest.Wheel(t, "leaf", "1.0")
		list := []pypitest.Dist{child, other, root, leaf}
		for _, d := range list {
			b.publish(d)
		}
		log, _ := b.judgesBy(document, alike{})
		for _, d := range list {
			page, metadata := b.get("/simple/"+d.Name+"/"), b.get("/p/"+d.File+".metadata")
			if page.StatusCode != http.StatusOK || !strings.Contains(page.body, `data-core-metadata=`) || metadata.StatusCode != http.StatusOK {
				t.Errorf("%s: %s\n%s", d.Name, status(page), status(metadata))
			}
			if near := strings.HasPrefix(d.Name, "popular"); near == strings.Contains(page.body, `data-core-metadata="sha256=`) || metadata.body != string(d.Metadata) {
				t.Errorf("%s: %s\n%s", d.Name, page.body, metadata.body)
			}
		}
		for _, d := range list {
			want := http.StatusOK
			if d.Name == other.Name {
				want = http.StatusForbidden
			}
			if a := b.get("/p/" + d.File); a.StatusCode != want {
				t.Errorf("%s: %s", d.Name, status(a))
			}
		}
		const both = `"core-metadata":true,"dist-info-metadata":"true"`
		for _, d := range list {
			page := b.get("/simple/"+d.Name+"/", "Accept", pypitest.TypeJSON)
			if near := d.Name == other.Name; near != strings.Contains(page.body, both) {
				t.Errorf("%s: %s", d.Name, page.body)
			}
		}
		outlines, blocked := 0, 0
		for _, r := range recorded(t, log) {
			if r.Outcome == audit.Shown && r.Detail["kind"] == door.ShownOutline {
				outlines++
			}
			if r.Outcome == audit.Blocked {
				blocked++
			}
			if r.Outcome == audit.Blocked && (r.Package != other.Name || r.File != other.File) {
				t.Errorf("%s %s is on record as refused: %s", r.Package, r.File, r.Reason)
			}
		}
		if outlines != 2 || blocked != 1 {
			t.Errorf("%d outlines are on record as shown, and %d files as refused", outlines, blocked)
		}
	}
}

// TestALookalikesPageBesideItsParents: npm asks for the pages of all that a package.json
// names at one time.
func TestALookalikesPageBesideItsParents(t *testing.T) {
	b := newNodeBench(t, func(b *bench, _ *upstream.Config) { b.cfg.Limits.QuietTime = time.Second })
	b.nodeTree(map[string]map[string]any{"root@1.0.0": {"popular2": "^1.0.0"}, "popular2@1.0.0": nil, "popular3@1.0.0": nil})
	b.judgesBy("packages: { default: allow }", alike{})
	var all sync.WaitGroup
	for name, want := range map[string]int{"popular2": http.StatusOK, "popular3": http.StatusForbidden, "root": http.StatusOK} {
		all.Go(func() {
			if a := b.get("/" + name); a.StatusCode != want {
				t.Errorf("%s: %s", name, status(a))
			}
		})
	}
	all.Wait()
}
