package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/ledger"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const ripeDocument = `
packages: { default: DEFAULT, sdist: hold, min_release_age: 7d }
allowed_packages:
  python: [ { name: root, with_dependencies: true } ]
  node: [ { name: root, with_dependencies: true } ]
  go: [ { name: example.com/root, with_dependencies: true } ]
`

func aged(f door.File, days int) door.File {
	f.Published = noon().AddDate(0, 0, -days)
	return f
}

// undated is a file whose age nobody knows, so that it waits.
func undated(f door.File) door.File {
	f.Published = time.Time{}
	return f
}

// ripening are releases by how their file stands, with whether their requirements
// may admit anything.
func ripening(f door.File) map[string]struct {
	file   door.File
	admits bool
} {
	return map[string]struct {
		file   door.File
		admits bool
	}{
		"old":     {aged(f, 30), true}, // positive control
		"young":   {aged(f, 1), false},
		"future":  {aged(f, -3), false},
		"undated": {undated(f), false},
	}
}

// TestMetadataOpensWhatItsReleaseWould: the go.mod of a release that may not be had,
// or not yet, may be read, and what it requires is admitted by none of that.
func TestMetadataOpensWhatItsReleaseWould(t *testing.T) {
	root, child := module("example.com/root", "v1.0.0"), module("example.com/child", "v1.0.0")
	for name, c := range ripening(archive(root)) {
		t.Run(name, func(t *testing.T) {
			h := newRipeHouse(t, "deny")
			if !h.modOf(t, root, c.file, "example.com/child v1.0.0") {
				t.Fatal("its go.mod can't be read")
			}
			h.expect(t, c.admits, child)
			if !c.admits {
				a, err := h.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: root, File: c.file}})
				must(t, err)
				if a.Decision.Allowed() {
					t.Errorf("the release itself: %+v", a.Decision)
				}
				h.expect(t, false, child)
			}
		})
	}
	h := newRipeHouse(t, "deny") // metadata that comes without a word on its release
	a, err := h.Judge(t.Context(), door.JudgeAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: root, File: door.File{Name: "v.mod", Version: root.Version, Kind: policy.KindMetadata}}})
	must(t, err)
	if !a.Decision.Allowed() {
		t.Fatalf("%+v", a.Decision)
	}
	must(t, h.Edges(t.Context(), "sb1", root, []door.Requirement{{Name: child.Name}}))
	h.expect(t, false, child)
	h.expect(t, true, root) // and then its file is let in
	h.expect(t, true, child)
}

// TestAReleaseThatRipens admits what it requires, which was told long before.
func TestAReleaseThatRipens(t *testing.T) {
	root, child := module("example.com/root", "v1.0.0"), module("example.com/child", "v1.0.0")
	h := newRipeHouse(t, "deny")
	h.modOf(t, root, aged(archive(root), 1), "example.com/child v1.0.0")
	h.expect(t, false, child)
	h.advance(10 * 24 * time.Hour)
	h.modOf(t, root, aged(archive(root), 1), "example.com/child v1.0.0")
	h.expect(t, true, child)
}

// TestSidecarsAndPagesOfWhatIsNotRipe: as go.mod files, for clients that read pages
// and metadata beside the files.
func TestSidecarsAndPagesOfWhatIsNotRipe(t *testing.T) {
	for name, c := range ripening(wheel("root", "1.0")) {
		t.Run("python "+name, func(t *testing.T) {
			h := newRipeHouse(t, "deny")
			_, err := h.Index(t.Context(), indexOf("root", "d", c.file))
			must(t, err)
			_, err = h.Preview(t.Context(), door.PreviewAsk{FileAsk: door.FileAsk{Sandbox: "sb1", Package: python("root", "1.0"), File: c.file}})
			must(t, err)
			_ = h.Edges(t.Context(), "sb1", python("root", "1.0"), []door.Requirement{{Name: "child"}}) // refused, or without effect
			a, err := h.Judge(t.Context(), judging("child", "1.0"))
			must(t, err)
			if a.Decision.Allowed() != c.admits {
				t.Errorf("%+v", a.Decision)
			}
		})
	}
	for name, c := range ripening(archive(node("root", "1.0.0"))) {
		t.Run("node "+name, func(t *testing.T) {
			h := newRipeHouse(t, "deny")
			a, err := h.Index(t.Context(), door.IndexAsk{Sandbox: "sb1", Package: node("root", ""), IndexDigest: "d", Files: []door.File{c.file}})
			must(t, err)
			if a.WantEdges {
				must(t, h.EdgesOfIndex(t.Context(), "sb1", node("root", ""), "d", []door.IndexRequirement{{Name: "child", Versions: []string{"1.0.0"}}}))
			}
			h.expect(t, c.admits, node("child", "1.0.0"))
		})
	}
}

// TestWhatIsWithdrawnAdmitsNoMore: a person takes an approval back, or what looks
// into the file finds more than the page told; and one who approves again is heard.
func TestWhatIsWithdrawnAdmitsNoMore(t *testing.T) {
	h := newRipeHouse(t, "deny")
	root := python("root", "1.0")
	sdist := func() door.AwaitAsk {
		ask := awaiting("root", "1.0")
		ask.File.Name, ask.File.Kind = "root-1.0.tar.gz", policy.KindSdist
		return ask
	}
	child := func(want bool, when string) {
		t.Helper()
		a, err := h.Judge(t.Context(), judging("child", "1.0"))
		must(t, err)
		if a.Decision.Allowed() != want {
			t.Errorf("%s: %+v", when, a.Decision)
		}
		grandchild, err := h.Judge(t.Context(), judging("grandchild", "1.0"))
		must(t, err)
		if grandchild.Decision.Allowed() != want {
			t.Errorf("%s, what the child requires: %+v", when, grandchild.Decision)
		}
	}
	a, err := h.Await(t.Context(), sdist())
	must(t, err)
	must(t, h.Edges(t.Context(), "sb1", root, []door.Requirement{{Name: "child"}}))
	h.queue.answer(t, a.Approval, approval.Approved)
	_, err = h.Await(t.Context(), sdist())
	must(t, err)
	_, err = h.Judge(t.Context(), judging("child", "1.0"))
	must(t, err)
	must(t, h.Edges(t.Context(), "sb1", python("child", "1.0"), []door.Requirement{{Name: "grandchild"}}))
	child(true, "approved")
	h.queue.revoke(a.Approval)
	again, err := h.Await(t.Context(), sdist())
	must(t, err)
	child(false, "revoked")
	h.queue.answer(t, again.Approval, approval.Approved)
	_, err = h.Await(t.Context(), sdist())
	must(t, err)
	child(true, "approved again")
}

// TestAnotherFileOfTheReleaseMovesNothing: a source distribution that waits leaves
// the wheel, and what it requires, let in.
func TestAnotherFileOfTheReleaseMovesNothing(t *testing.T) {
	h := newRipeHouse(t, "deny")
	_, err := h.Judge(t.Context(), judging("root", "1.0"))
	must(t, err)
	must(t, h.Edges(t.Context(), "sb1", python("root", "1.0"), []door.Requirement{{Name: "child"}}))
	sdist := judging("root", "1.0")
	sdist.File.Name, sdist.File.Kind = "root-1.0.tar.gz", policy.KindSdist
	if a, err := h.Judge(t.Context(), sdist); err != nil || a.Decision.Effect != policy.Hold {
		t.Fatalf("%+v, %v", a, err)
	}
	if a, err := h.Judge(t.Context(), judging("child", "1.0")); err != nil || !a.Decision.Allowed() {
		t.Errorf("%+v, %v", a, err)
	}
}

// ripeHouse is a grove under ripeDocument, with a queue.
type ripeHouse struct {
	*grove
	queue *queue
}

func newRipeHouse(tb testing.TB, byDefault string) *ripeHouse {
	tb.Helper()
	g := newGrove(tb, "{}", Limits{})
	g.Unregister("sb1")
	h := &ripeHouse{grove: g, queue: newQueue()}
	h.config.Approvals = h.queue
	h.policy = parse(tb, strings.Replace(ripeDocument, "DEFAULT", byDefault, 1))
	must(tb, h.Register(h.run()))
	return h
}

// TestNoOrderOfEventsLetsOthersIn: whatever is asked, shown, approved and revoked in
// whatever order, an edge admits only while the release that it comes from is
// admitted, through the entry that the edge names; and a release is admitted through
// an entry only if the policy, or a person, lets its file in now.
func TestNoOrderOfEventsLetsOthersIn(t *testing.T) {
	names := []string{"root", "a", "b"}
	h := newRipeHouse(t, "deny")
	rapid.Check(t, func(rt *rapid.T) {
		h.Unregister("sb1")
		h.queue = newQueue()
		h.config.Approvals = h.queue
		h.policy = parse(t, strings.Replace(ripeDocument, "DEFAULT", rapid.SampledFrom([]string{"deny", "hold"}).Draw(rt, "default"), 1))
		must(t, h.Register(h.run()))
		w := &wanderer{ripeHouse: h, rt: rt}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			ref := python(rapid.SampledFrom(names).Draw(rt, "name"), rapid.SampledFrom([]string{"1.0", "2.0"}).Draw(rt, "version"))
			w.step(t, ref)
			w.check(t)
		}
	})
}

// wanderer does one thing after the other with a few releases.
type wanderer struct {
	*ripeHouse
	rt    *rapid.T
	pages int
}

func (w *wanderer) file(ref pkgref.Ref) door.File {
	f := wheel(ref.Name, ref.Version)
	switch rapid.SampledFrom([]string{"old", "young", "undated"}).Draw(w.rt, "age") {
	case "young":
		f = aged(f, 1)
	case "undated":
		f = undated(f)
	}
	return f
}

func (w *wanderer) step(tb testing.TB, ref pkgref.Ref) {
	tb.Helper()
	switch rapid.SampledFrom([]string{"file", "mod", "bare", "page", "edges", "edges", "await", "answer", "revoke", "time"}).Draw(w.rt, "do") {
	case "file":
		w.judge(tb, door.FileAsk{Sandbox: "sb1", Package: ref, File: w.file(ref)})
	case "mod":
		f := w.file(ref)
		w.judge(tb, door.FileAsk{Sandbox: "sb1", Package: ref, File: door.File{Name: "m", Version: ref.Version, Kind: policy.KindMetadata}, Release: &f})
	case "bare":
		w.judge(tb, door.FileAsk{Sandbox: "sb1", Package: ref, File: door.File{Name: "m", Version: ref.Version, Kind: policy.KindMetadata}})
	case "page":
		w.pages++
		digest := fmt.Sprint(w.pages)
		other := ref
		other.Version = "2.0"
		a, err := w.Index(tb.Context(), indexOf(ref.Name, digest, w.file(python(ref.Name, "1.0")), w.file(other)))
		must(tb, err)
		if a.WantEdges {
			_ = w.EdgesOfIndex(tb.Context(), "sb1", python(ref.Name, ""), digest, []door.IndexRequirement{{Name: "b", Versions: []string{"1.0", "2.0"}}})
		}
	case "edges":
		_ = w.Edges(tb.Context(), "sb1", ref, []door.Requirement{{Name: rapid.SampledFrom([]string{"a", "b"}).Draw(w.rt, "child")}})
	case "await":
		ask := awaiting(ref.Name, ref.Version)
		ask.File = undated(ask.File)
		a, err := w.Await(tb.Context(), ask)
		must(tb, err)
		w.stands(tb, ask.FileAsk, a)
	case "answer":
		for _, r := range w.queue.list() {
			if r.State == approval.Pending {
				w.queue.answer(tb, r.ID, approval.Approved)
			}
		}
	case "revoke":
		for _, r := range w.queue.list() {
			w.queue.revoke(r.ID)
		}
	case "time":
		w.advance(time.Hour)
	}
}

func (w *wanderer) judge(tb testing.TB, ask door.FileAsk) {
	tb.Helper()
	a, err := w.Judge(tb.Context(), door.JudgeAsk{FileAsk: ask})
	must(tb, err)
	w.stands(tb, ask, a)
}

// stands: a release is let in exactly if the last answer about its file was that.
func (w *wanderer) stands(tb testing.TB, ask door.FileAsk, a door.Answer) {
	tb.Helper()
	effect := a.Decision.Effect
	tenant, err := w.tenants.getTenant("sb1")
	must(tb, err)
	if s := tenant.ledger.Standing(ask.Package); ask.File.Kind != policy.KindMetadata && (s.State == ledger.Admitted) != (effect == policy.Allow) {
		w.rt.Fatalf("%s is %s after its file was decided: %s", ask.Package, s.State, effect)
	}
}

func (w *wanderer) check(tb testing.TB) {
	tb.Helper()
	tenant, err := w.tenants.getTenant("sb1")
	must(tb, err)
	for e, s := range tenant.ledger.Edges() {
		if e.Through != "" && s.Admits() != e.Through {
			w.rt.Fatalf("%s is admitted through %s by %s, which is %s", e.Name, e.Through, e.Parent, s.State)
		}
		if !slices.Contains([]string{"", "allowed_packages.python.root"}, e.Through) {
			w.rt.Fatalf("an edge through %q", e.Through)
		}
	}
}
