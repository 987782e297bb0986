package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// These are what the gateway itself does on a walk, whatever the door would make of it:
// it asks before it reads, and tells nothing that it was not allowed to read.

// telling is a toy one of whose attachments says what a release requires.
type telling struct {
	addressed
	file string // how its name ends
}

func (t telling) Requires(project, version string) (ecosystem.Route, error) {
	return ecosystem.Route{Kind: ecosystem.RouteAttachment, Project: project, Version: version, File: version + t.file}, nil
}

var _ ecosystem.Requirer = telling{}

func onlyIf(allowed bool) policy.Decision {
	if allowed {
		return policy.Decision{Effect: policy.Allow}
	}
	return policy.Decision{Effect: policy.Deny, Reason: "it may not be read"}
}

// way has the door name projects to read on the way to what is asked for next, and say
// which of their metadata may be read.
func (b *bench) way(mayRead func(door.WalkAsk) bool, projects ...door.ToRead) {
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	b.door.next = projects
	b.door.mayRead = func(ask door.WalkAsk) policy.Decision { return onlyIf(mayRead(ask)) }
}

// releasesWithEdges are the releases of which the door was told what they require.
func (b *bench) releasesWithEdges() (releases []string) {
	b.door.mu.Lock()
	defer b.door.mu.Unlock()
	for release, reqs := range b.door.edges {
		if len(reqs) > 0 {
			releases = append(releases, release)
		}
	}
	slices.Sort(releases)
	return releases
}

// TestAWalkAsksBeforeItReadsASidecar, and reads that of no file, nor of any release, that
// the page's verdict refuses.
func TestAWalkAsksBeforeItReadsASidecar(t *testing.T) {
	for what, c := range map[string]struct {
		shown    func(pkgref.Ref, door.File) bool
		mayRead  bool
		read     string // files whose metadata is
		releases []string
	}{
		"it may be read":      {func(pkgref.Ref, door.File) bool { return true }, true, "root-2.0-a", []string{"python root 2.0"}},
		"it may not":          {func(pkgref.Ref, door.File) bool { return true }, false, "", nil},
		"one file is refused": {func(_ pkgref.Ref, f door.File) bool { return !strings.Contains(f.Name, "2.0-a") }, true, "root-2.0-b", []string{"python root 2.0"}},
		"all are":             {func(ref pkgref.Ref, _ door.File) bool { return ref.Name != "root" }, true, "", nil},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBench(t, nil)
			child := pypitest.Wheel(t, "child", "1.0")
			b.publish(child)
			var files []pypitest.Dist
			for _, build := range []string{"a", "b"} {
				d := pypitest.Wheel(t, "root", "2.0", "child")
				d.File = strings.Replace(d.File, "2.0-", "2.0-1"+build+"-", 1)
				files = append(files, d)
			}
			b.publish(files...)
			b.door.rule(func(ref pkgref.Ref, f door.File) policy.Decision {
				f.Name = strings.Replace(f.Name, "2.0-1", "2.0-", 1)
				return onlyIf(c.shown(ref, f))
			})
			b.way(func(door.WalkAsk) bool { return c.mayRead }, door.ToRead{Project: pkgref.Ref{Ecosystem: pkgref.Python, Name: "root"}})
			if a := b.get("/p/" + child.File); a.StatusCode != http.StatusOK {
				t.Errorf("%s", status(a))
			}
			var read []string
			for _, d := range files {
				if b.registry.Count(filesHost+"/p/"+d.File)+b.registry.Count(filesHost+"/p/"+d.File+".metadata") > 0 {
					read = append(read, strings.TrimSuffix(strings.Replace(d.File, "2.0-1", "2.0-", 1), "-py3-none-any.whl"))
				}
			}
			if got := strings.Join(read, " "); got != c.read {
				t.Errorf("%q is read, want %q", got, c.read)
			}
			if diff := cmp.Diff(c.releases, b.releasesWithEdges()); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAWalkAsksBeforeItReadsAnAttachment, and once more when it knows the bytes: what they
// require counts as the file does that a witnessed attachment describes, and another
// describes none. A release that the page's verdict refuses is not even asked about.
func TestAWalkAsksBeforeItReadsAnAttachment(t *testing.T) {
	before := func(ask door.WalkAsk) bool { return len(ask.Digests) == 0 && ask.Release == nil }
	for what, c := range map[string]struct {
		file     string // that tells
		mayRead  func(door.WalkAsk) bool
		asks     int
		read     bool
		releases []string
		describe bool // the file of the release, at the last ask
	}{
		"it may be read":             {".mod", func(door.WalkAsk) bool { return true }, 2, true, []string{"go root 1.0"}, true},
		"it may not":                 {".mod", func(door.WalkAsk) bool { return false }, 1, false, nil, false},
		"it may not, by its bytes":   {".mod", before, 2, true, nil, true},
		"it may, and is unwitnessed": {".info", func(door.WalkAsk) bool { return true }, 2, true, []string{"go root 1.0"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			b := newToyBench(t, telling{addressed{newToy(pkgref.Go)}, c.file}, nil)
			b.list(indexHost, "child", toyFile{Version: "1.0", Digest: sha256Of(b.file(indexHost, toyPackage{Name: "child", Version: "1.0"}))})
			b.list(indexHost, "root", toyFile{Version: "2.0"}, toyFile{Version: "1.0"})
			for _, version := range []string{"1.0", "2.0"} {
				b.registry.Script(indexHost+"/root/"+version+c.file, liar.Body("text/plain", []byte(version+" child")))
			}
			b.door.rule(func(ref pkgref.Ref, _ door.File) policy.Decision { return onlyIf(ref.Version != "2.0") })
			b.way(c.mayRead, door.ToRead{Project: pkgref.Ref{Ecosystem: pkgref.Go, Name: "root"}, Round: 1})
			if a := b.get("/child/1.0.pkg"); a.StatusCode != http.StatusOK {
				t.Errorf("%s", status(a))
			}
			if read := b.registry.Count(indexHost + "/root/1.0" + c.file); (read > 0) != c.read || b.registry.Count(indexHost+"/root/2.0"+c.file) > 0 {
				t.Errorf("it is read %d times, and that of the refused release %d", read, b.registry.Count(indexHost+"/root/2.0"+c.file))
			}
			if diff := cmp.Diff(c.releases, b.releasesWithEdges()); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			b.door.mu.Lock()
			defer b.door.mu.Unlock()
			asks := b.door.walked
			if len(asks) != c.asks {
				t.Fatalf("it is asked for %d times: %+v", len(asks), asks)
			}
			for _, ask := range asks {
				if ask.Package.String() != "go root 1.0" || ask.File.Kind != policy.KindMetadata {
					t.Errorf("asked about %s, as %s", ask.Package, ask.File.Kind)
				}
			}
			if last := asks[len(asks)-1]; (last.Release != nil) != c.describe {
				t.Errorf("the last question is about the file %+v", last.Release)
			}
		})
	}
}

// TestAWalkTellsNothingThatNoClientGets: metadata that requires what no gateway serves is
// refused to clients, and tells the door nothing.
func TestAWalkTellsNothingThatNoClientGets(t *testing.T) {
	for _, direct := range []bool{false, true} {
		b := newBench(t, nil)
		child := pypitest.Wheel(t, "child", "1.0")
		requires := []string{"child"}
		if direct {
			requires = append(requires, "x @ https://x.example/x.whl")
		}
		b.publish(child)
		b.publish(pypitest.Wheel(t, "root", "1.0", requires...))
		b.way(func(door.WalkAsk) bool { return true }, door.ToRead{Project: pkgref.Ref{Ecosystem: pkgref.Python, Name: "root"}})
		b.get("/p/" + child.File)
		if releases := b.releasesWithEdges(); (len(releases) > 0) == direct {
			t.Errorf("direct %v: told of %q", direct, releases)
		}
	}
}
