package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// TestInspectedFiles: what a file is, is found out before anybody gets it, and
// goes to the door with its serving.
func TestInspectedFiles(t *testing.T) {
	toy := newToy(pkgref.Node)
	b := newToyBench(t, toy, nil)
	b.list(indexHost, "compiler", toyFile{Version: "1.0.0", Requires: []string{"bar"}})
	b.file(indexHost, toyPackage{
		Name: "compiler", Version: "1.0.0", Requires: []string{"bar"}, Scripts: []string{"postinstall"}, Findings: []string{"it is odd"},
		Bundled: []ecosystem.Bundled{{Name: "inner", Version: "2.0.0"}, {Name: "other"}},
	})
	for range 2 {
		if a := b.get("/compiler/1.0.0.pkg"); a.StatusCode != 200 {
			t.Fatal(status(a))
		}
	}
	b.restart()
	b.get("/compiler/1.0.0.pkg")
	if n := toy.looked.Load(); n != 1 {
		t.Errorf("the file was looked into %d times", n)
	}
	for _, s := range b.door.Served() {
		if diff := cmp.Diff([]string{"inner 2.0.0", "other"}, s.Bundled); diff != "" || !s.File.Scripts || !s.Toolchain || s.Findings[0] != "it is odd" {
			t.Errorf("served %+v\n%s", s, diff)
		}
	}
	if diff := cmp.Diff([]door.Requirement{{Name: "bar"}}, b.door.edges["node compiler 1.0.0"]); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
	b.list(indexHost, "compiler", toyFile{Version: "1.0.0", Requires: []string{"bar", "more"}})
	alwaysAsking(&b.cfg)
	b.restart()
	b.get("/compiler/1.0.0.pkg")
	if n := toy.looked.Load(); n != 2 {
		t.Errorf("after the index said something else the file was looked into %d times in all", n)
	}
}

// panicking is a toy whose reader has a bug.
type panicking struct{ toy }

func (panicking) Inspect(ecosystem.File, []byte, ecosystem.Content) (ecosystem.Inspection, error) {
	panic("index out of range")
}

// TestABugInAReader costs the run that met it one file, and no other run anything.
func TestABugInAReader(t *testing.T) {
	b := newToyBench(t, panicking{newToy(pkgref.Node)}, nil)
	b.list(indexHost, "foo", toyFile{Version: "1.0.0"})
	b.file(indexHost, toyPackage{Name: "foo", Version: "1.0.0"})
	if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.body, "a bug in the gateway") {
		t.Error(status(a))
	}
	if a := b.get("/foo"); a.StatusCode != http.StatusOK {
		t.Errorf("after that: %s", status(a))
	}
	if f := b.door.Failures(); len(f) != 1 || f[0].File != "1.0.0.pkg" {
		t.Errorf("recorded: %+v", f)
	}
}

// TestRefusedByInspection is G-PA-01 and the ways 24 to 26: a file that is not
// what the index says, or hides something, is nobody's.
func TestRefusedByInspection(t *testing.T) {
	for name, c := range map[string]struct {
		listed toyFile
		file   toyPackage
		says   string
	}{
		"a hostile container":       {toyFile{}, toyPackage{Name: "foo", Version: "1.0.0", Hostile: "two files have one name"}, "two files have one name"},
		"another name":              {toyFile{}, toyPackage{Name: "bar", Version: "1.0.0"}, "another release than the index says"},
		"another version":           {toyFile{}, toyPackage{Name: "foo", Version: "1.0.1"}, "another release than the index says"},
		"a requirement by URL":      {toyFile{}, toyPackage{Name: "foo", Version: "1.0.0", Direct: "bar"}, "its metadata requires bar from a URL or a repository"},
		"a requirement that hides":  {toyFile{Requires: []string{"bar"}}, toyPackage{Name: "foo", Version: "1.0.0", Requires: []string{"evil"}}, "requires evil, which the index does not say"},
		"a sidecar of another file": {toyFile{Sidecar: "sha256:0"}, toyPackage{Name: "foo", Version: "1.0.0", Sidecar: "sha256:1"}, "not the metadata that the index offers"},
	} {
		t.Run(name, func(t *testing.T) {
			toy := newToy(pkgref.Node)
			b := newToyBench(t, toy, nil)
			c.listed.Version = "1.0.0"
			b.list(indexHost, "foo", c.listed)
			served := c.file
			served.Name, served.Version = "foo", "1.0.0"
			b.file(indexHost, served)
			b.registry.Script(indexHost+"/foo/1.0.0.pkg", bodyOf(c.file.bytes()))
			for i := range 3 {
				if i == 2 {
					b.restart()
				}
				a := b.get("/foo/1.0.0.pkg")
				if a.StatusCode != http.StatusFailedDependency || !strings.Contains(a.Status, c.says) {
					t.Error(status(a))
				}
			}
			if f := b.door.Failures(); len(f) != 3 || f[0].ResolvedBy != policy.ByIntegrity || len(b.door.Served()) != 0 || len(b.door.edges) != 0 {
				t.Errorf("failures %+v, served %v, edges %v", f, b.door.Served(), b.door.edges)
			}
			if n := toy.looked.Load(); n != 1 {
				t.Errorf("the file was looked into %d times", n)
			}
		})
	}
}

// TestScriptsThatTheIndexHides: the policy hears of them before an edge or a
// byte, and for HEAD too.
func TestScriptsThatTheIndexHides(t *testing.T) {
	b := newToyBench(t, newToy(pkgref.Node), nil)
	for _, name := range []string{"quiet", "loud"} {
		b.list(indexHost, name, toyFile{Version: "1.0.0", Requires: []string{"bar"}})
	}
	b.file(indexHost, toyPackage{Name: "quiet", Version: "1.0.0", Requires: []string{"bar"}})
	b.file(indexHost, toyPackage{Name: "loud", Version: "1.0.0", Requires: []string{"bar"}, Scripts: []string{"install"}})
	b.door.rule(func(_ pkgref.Ref, f door.File) policy.Decision {
		if f.Scripts {
			return policy.Decision{Effect: policy.Deny, Reason: "it runs install scripts", Rule: "packages.install_scripts"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		if a := b.do(sandboxA, method, "https://"+indexHost+"/quiet/1.0.0.pkg"); a.StatusCode != 200 { // positive control
			t.Error(status(a))
		}
		if a := b.do(sandboxA, method, "https://"+indexHost+"/loud/1.0.0.pkg"); a.StatusCode != 403 || !strings.Contains(a.Status, "it runs install scripts") {
			t.Error(status(a))
		}
	}
	if _, answered := b.door.edges["node loud 1.0.0"]; answered || len(b.door.Served()) != 1 {
		t.Errorf("edges %v, served %v", b.door.edges, b.door.Served())
	}
}

// TestManyPackagesInside: past a bound what lies in a file is not listed, and so not looked up, which is said. The
// control is a file with one less.
func TestManyPackagesInside(t *testing.T) {
	for count, told := range map[int]bool{ecosystem.MaxBundled - 1: false, ecosystem.MaxBundled: true} {
		p := toyPackage{Name: "foo", Version: "1.0.0"}
		for i := range count {
			p.Bundled = append(p.Bundled, ecosystem.Bundled{Name: fmt.Sprintf("inner-%d", i)})
		}
		b := newToyBench(t, newToy(pkgref.Node), nil)
		b.list(indexHost, "foo", toyFile{Version: "1.0.0", Digest: sha256Of(p.bytes())})
		b.file(indexHost, p)
		if a := b.get("/foo/1.0.0.pkg"); a.StatusCode != http.StatusOK {
			t.Fatal(status(a))
		}
		served := b.door.Served()
		if len(served) != 1 || len(served[0].Bundled) != count || slices.ContainsFunc(served[0].Findings, func(f string) bool { return strings.Contains(f, "500 packages or more inside") }) != told {
			t.Errorf("with %d: %d served, %q", count, len(served), served[0].Findings)
		}
	}
}
