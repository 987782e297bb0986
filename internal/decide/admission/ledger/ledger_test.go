package ledger

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// standings are the ones that transitions are told from: each state as it rests on a
// page (or a lockfile), on the file f, and by what requires it.
func standings(f *policy.FileFacts) map[string]Standing {
	return map[string]Standing{
		"unknown":              {},
		"shown":                {State: Shown},
		"shown f":              {State: Shown, File: "f", Facts: f},
		"shown listed":         {State: Shown, Listed: true},
		"held":                 {State: Held},
		"held f":               {State: Held, File: "f", Facts: f},
		"admitted E":           {State: Admitted, Through: "E", Listed: true},
		"admitted f E":         {State: Admitted, Through: "E", File: "f", Facts: f},
		"admitted f":           {State: Admitted, File: "f", Facts: f},
		"admitted f E by edge": {State: Admitted, Through: "E", File: "f", Facts: f, ByEdge: true},
		"admitted E by edge":   {State: Admitted, Through: "E", Listed: true, ByEdge: true},
		"refused":              {State: Refused},
		"refused f":            {State: Refused, File: "f", Facts: f},
	}
}

func events(f, g *policy.FileFacts) map[string]Event {
	return map[string]Event{
		"read":           {Kind: Read},
		"read f":         {Kind: Read, File: "f", Facts: f},
		"listed":         {Kind: Listed},
		"page waits":     {Kind: Waits},
		"f waits":        {Kind: Waits, File: "f", Facts: f},
		"g waits":        {Kind: Waits, File: "g", Facts: g},
		"page allows E":  {Kind: Allowed, Through: "E"},
		"f allowed E":    {Kind: Allowed, Through: "E", File: "f", Facts: f},
		"f allowed":      {Kind: Allowed, File: "f", Facts: f},
		"g allowed D":    {Kind: Allowed, Through: "D", File: "g", Facts: g},
		"f allowed edge": {Kind: Allowed, Through: "E", File: "f", Facts: f, ByEdge: true},
		"f denied":       {Kind: Denied, File: "f", Facts: f},
		"g denied":       {Kind: Denied, File: "g", Facts: g},
		"all denied":     {Kind: Denied},
		"loosened":       {Kind: Loosened},
		"unheard of":     {Kind: 99, Through: "E", File: "f"},
	}
}

// inWords is a standing in words, as the table has them.
func inWords(s Standing) string {
	words := []string{s.State.String(), s.File, s.Through}
	if s.State == Shown && s.Listed {
		words = append(words, "listed")
	}
	if s.ByEdge {
		words = append(words, "by edge")
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// transitions has where each standing goes by each event; "=" stays as it was. The
// columns are in order's order.
const transitions = `
                     | read    | read f  | listed             | page waits | f waits | g waits | page allows E        | f allowed E          | f allowed            | g allowed D          | f allowed edge       | f denied  | g denied  | all denied | loosened     | unheard of
unknown              | shown   | shown f | shown listed       | held       | held f  | held g  | admitted E           | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | refused f | refused g | refused    | =            | unknown
shown                | =       | shown f | shown listed       | held       | held f  | held g  | admitted E           | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | refused f | refused g | refused    | =            | unknown
shown f              | =       | =       | shown f listed     | held       | held f  | held g  | admitted f E         | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | refused f | refused g | refused    | =            | unknown
shown listed         | =       | shown f | =                  | held       | held f  | held g  | admitted E           | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | refused f | refused g | refused    | =            | unknown
held                 | =       | shown f | shown listed       | =          | held f  | held g  | admitted E           | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | refused f | refused g | refused    | =            | unknown
held f               | =       | shown f | =                  | =          | =       | =       | =                    | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | refused f | =         | refused    | =            | unknown
admitted E           | =       | shown f | shown listed       | held       | held f  | held g  | =                    | admitted f E         | admitted f E         | admitted g E         | admitted f E         | refused f | refused g | refused    | =            | unknown
admitted f E         | =       | shown f | =                  | =          | held f  | =       | =                    | =                    | =                    | admitted g E         | =                    | refused f | =         | refused    | =            | unknown
admitted f           | =       | shown f | =                  | =          | held f  | =       | admitted f E         | admitted f E         | =                    | admitted g D         | admitted f E         | refused f | =         | refused    | =            | unknown
admitted f E by edge | =       | shown f | =                  | =          | held f  | =       | admitted f E         | admitted f E         | admitted f E         | admitted g E         | =                    | refused f | =         | refused    | shown f      | unknown
admitted E by edge   | =       | shown f | =                  | held       | held f  | held g  | admitted E           | admitted f E         | admitted f E         | admitted g E         | admitted f E by edge | refused f | refused g | refused    | shown listed | unknown
refused              | shown   | shown f | shown listed       | held       | held f  | held g  | admitted E           | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | refused f | refused g | =          | =            | unknown
refused f            | shown f | shown f | =                  | =          | held f  | held g  | =                    | admitted f E         | admitted f           | admitted g D         | admitted f E by edge | =         | refused g | refused    | =            | unknown
`

// TestEveryTransition has all of them: a state or an event that is added without a
// word on where it leads fails here.
func TestEveryTransition(t *testing.T) {
	f, g := &policy.FileFacts{File: "f"}, &policy.FileFacts{File: "g"}
	from, by := standings(f), events(f, g)
	rows := strings.Split(strings.TrimSpace(transitions), "\n")
	var order []string
	for i, row := range append([]string{"|" + strings.TrimPrefix(strings.TrimSpace(rows[0]), "|")}, rows[1:]...) {
		cells := strings.Split(row, "|")
		for k := range cells {
			cells[k] = strings.TrimSpace(cells[k])
		}
		if i == 0 {
			order = cells[1:]
			continue
		}
		s, known := from[cells[0]]
		if !known || len(cells)-1 != len(order) {
			t.Fatalf("the row %q is none", cells[0])
		}
		delete(from, cells[0])
		for k, want := range cells[1:] {
			if want == "=" {
				want = cells[0]
			}
			e, known := by[order[k]]
			if !known {
				t.Fatalf("the table tells of %q", order[k])
			}
			if got := advance(s, e); inWords(got) != want {
				t.Errorf("%s, %s: it is %s, want %s", cells[0], order[k], inWords(got), want)
			}
		}
	}
	for name, s := range standings(f) { // and if it were made otherwise than by advance
		s.Through = "E"
		if (s.Admits() == "E") != (s.State == Admitted) {
			t.Errorf("what %s requires is admitted through %q", name, s.Admits())
		}
	}
	if len(from) > 0 || len(order) != len(by) {
		t.Errorf("the table leaves out %v, and has %d of %d events", from, len(order), len(by))
	}
}

// TestOnlyAVerdictAdmits: whatever comes in whatever order, what a release requires
// is admitted only after an event that allowed it, through that event's entry, and
// until one takes it back.
func TestOnlyAVerdictAdmits(t *testing.T) {
	f, g := &policy.FileFacts{File: "f"}, &policy.FileFacts{File: "g"}
	by := events(f, g)
	var names []string
	for name := range by {
		names = append(names, name)
	}
	rapid.Check(t, func(rt *rapid.T) {
		var s Standing
		through := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(rt, "events") {
			e := by[rapid.SampledFrom(names).Draw(rt, "event")]
			before := s
			s = advance(s, e)
			if e.Kind == Allowed {
				through[e.Through] = true
			}
			switch {
			case s.State != Admitted && (s.Through != "" || s.ByEdge || s.Admits() != ""):
				rt.Fatalf("%+v is not admitted, and lets something in", s)
			case s.Admits() != "" && !through[s.Admits()]:
				rt.Fatalf("%+v: nothing allowed it through that", s)
			case before.State != Admitted && s.State == Admitted && e.Kind != Allowed:
				rt.Fatalf("%+v admits what was %+v", e, before)
			case e.Kind == Denied && (e.File == "" || e.File == before.File) && s.State != Refused:
				rt.Fatalf("after %+v it is %+v", e, s)
			case e.Kind == Waits && e.File != "" && e.File == before.File && s.State != Held:
				rt.Fatalf("after %+v it is %+v", e, s)
			}
		}
	})
}

func release(name, version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Node, Name: name, Version: version}
}

func pageOf(digest string, says map[string]Event) *Page {
	var m PageMaker
	for version, e := range says {
		m.Add(version, e)
	}
	return m.Page(digest, "epoch "+digest)
}

// TestAPageIsReplacedByTheNext: what only the earlier one let in is let in no more.
func TestAPageIsReplacedByTheNext(t *testing.T) {
	r := NewReleases(1<<20, NewBudget(1<<30, 0))
	ref := release("a", "")
	first := pageOf("1", map[string]Event{"1.0.0": {Kind: Allowed, Through: "E"}, "2.0.0": {Kind: Listed}, "3.0.0": {Kind: Waits}})
	if withdrawn, ok := r.SetPage(ref, first); withdrawn || !ok {
		t.Fatal(withdrawn, ok)
	}
	for version, want := range map[string]string{"1.0.0": "admitted E", "2.0.0": "shown listed", "3.0.0": "held", "4.0.0": "unknown"} {
		if got := inWords(r.Of(release("a", version))); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
	r.Move(release("a", "2.0.0"), Event{Kind: Allowed, Through: "E", ByEdge: true}) // it is required
	r.Move(release("a", "9.0.0"), Event{Kind: Allowed, Through: "E", File: "f"})    // no page has it
	if withdrawn, _ := r.SetPage(ref, first); withdrawn {
		t.Error("the same page takes something back")
	}
	withdrawn, ok := r.SetPage(ref, pageOf("2", map[string]Event{"3.0.0": {Kind: Allowed}}))
	if !withdrawn || !ok {
		t.Error("what fell is not told", withdrawn, ok)
	}
	for version, want := range map[string]string{"1.0.0": "unknown", "2.0.0": "unknown", "3.0.0": "admitted", "9.0.0": "admitted f E"} {
		if got := inWords(r.Of(release("a", version))); got != want {
			t.Errorf("then %s is %s, want %s", version, got, want)
		}
	}
	if r.Page(ref).Digest() != "2" || r.Page(release("b", "")).Digest() != "" {
		t.Error("which page it was")
	}
}

// TestSeveralFilesOfARelease: the one counts that lets the most in.
func TestSeveralFilesOfARelease(t *testing.T) {
	var m PageMaker
	for _, e := range []Event{{Kind: Waits}, {Kind: Allowed, Through: "E"}, {Kind: Allowed}, {Kind: Listed}, {Kind: Waits}} {
		m.Add("1.0.0", e)
	}
	m.Add("2.0.0", Event{Kind: Waits})
	p := m.Page("d", "e")
	if got := inWords(p.standingOf("1.0.0")) + ", " + inWords(p.standingOf("2.0.0")); got != "admitted E, held" || p.Shown() != 2 {
		t.Errorf("%s, %d shown", got, p.Shown())
	}
}

// TestBytesAreBounded: past the bound nothing more is remembered, so that it admits
// nothing, and what was withdrawn is so all the same.
func TestBytesAreBounded(t *testing.T) {
	const most = 64 << 10
	all := NewBudget(1<<30, 0)
	r := NewReleases(most, all)
	many := map[string]Event{}
	for i := range 400 {
		many[fmt.Sprintf("1.0.%d", i)] = Event{Kind: Allowed, Through: "E"}
	}
	fit := 0
	for i := range 100 {
		if _, ok := r.SetPage(release(fmt.Sprint("p", i), ""), pageOf(fmt.Sprint(i), many)); ok {
			fit++
		}
	}
	if fit == 0 || fit == 100 || r.Size() > most {
		t.Errorf("%d pages of 400 releases in %d bytes", fit, r.Size())
	}
	for i := range 10_000 {
		r.Move(release("q", fmt.Sprint(i, ".0.0")), Event{Kind: Allowed, Through: "E", File: "f"})
	}
	if r.Size() > most {
		t.Errorf("%d bytes", r.Size())
	}
	if before, after := r.Move(release("q", "99999.0.0"), Event{Kind: Allowed, Through: "E", File: "f"}); before.State != Unknown || after.State != Unknown {
		t.Errorf("there was room: %+v", after)
	}
	if before, after := r.Move(release("p0", "1.0.1"), Event{Kind: Denied}); before.Admits() != "E" || after.Admits() != "" || r.Of(release("p0", "1.0.1")).Admits() != "" {
		t.Errorf("a refusal for which there is no room: %+v, %+v", before, r.Of(release("p0", "1.0.1")))
	}
	if r.Take(most) || !r.Take(-100) || !r.Take(50) {
		t.Error("what is kept beside them is not counted with them")
	}
	if all.Taken() != r.Size() {
		t.Errorf("%d bytes are taken of the budget, for %d", all.Taken(), r.Size())
	}
	r.Close()
	r.Move(release("q", "1.0.0"), Event{Kind: Allowed, Through: "E"})
	if all.Taken() != 0 || r.Of(release("q", "1.0.0")).State != Unknown || r.Take(1) {
		t.Errorf("after its end it takes %d bytes", all.Taken())
	}
}

// TestRunsShareABudget: who takes most is refused first, and everybody has a least
// share.
func TestRunsShareABudget(t *testing.T) {
	all := NewBudget(1<<20, 100<<10)
	fill := func(r *Releases) {
		for i := 0; r.Take(10 << 10); i++ {
			if i > 1000 {
				t.Fatal("there is no end of it")
			}
		}
	}
	greedy, good := NewReleases(1<<30, all), NewReleases(1<<30, all)
	fill(greedy)
	fill(good)
	if greedy.Size() < 900<<10 || greedy.Size() > 1<<20 || good.Size() != 100<<10 {
		t.Errorf("one has %d, the other %d", greedy.Size(), good.Size())
	}
	greedy.Close()
	fill(good)
	if good.Size() < 900<<10 {
		t.Errorf("when the one has ended the other has %d", good.Size())
	}
}
