package approvaltest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// noon is when the suite's requests were made.
func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.UTC) }

// newEntry is a pending request of one run.
func newEntry(born uint64, name, run string) approval.Entry {
	at := noon().Add(time.Duration(born) * time.Second)
	return approval.Entry{Born: born, Runs: []approval.AskingRun{{Run: run, Policy: "sha256:p-" + run}}, Request: approval.Request{
		ID: fmt.Sprintf("ap-%06d", born), State: approval.Pending, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"},
		Upstream: "https://index.example/simple/", Group: "apg-" + run, Rule: "packages.default", Reason: "no list names it",
		Files:    []approval.File{{Name: name + "-1.0-py3-none-any.whl", Kind: "wheel", Digests: []string{"sha256:" + name}, Size: 12, Published: noon()}},
		Evidence: evidence.Evidence{Summary: "a \u202e \x1b[31m summary", Requires: []string{"a >1"}},
		Asks:     []approval.Asker{{Run: run, Policy: "sha256:p-" + run, Token: "tok-1", At: at}}, Asked: 1,
		Seen:    &approval.Seen{By: "carol", At: at},
		Created: at, Updated: at, Expires: at.Add(time.Hour),
	}}
}

func answeredEntry(e approval.Entry, state approval.State, scope approval.Scope, expires time.Time) approval.Entry {
	e.State = state
	e.Answer = &approval.Answer{State: state, By: "alice", At: noon(), Scope: scope, Expires: expires, Digests: []string{"sha256:x"}}
	for _, w := range e.Runs {
		switch scope {
		case approval.ScopeRun, approval.ScopeOnce:
			e.Answer.Runs = append(e.Answer.Runs, w.Run)
		case approval.ScopePolicy:
			e.Answer.Policies = append(e.Answer.Policies, w.Policy)
		case approval.ScopeEverywhere:
		}
	}
	return e
}

func applyEntries(t *testing.T, s approval.Store, entries ...approval.Entry) {
	t.Helper()
	b := approval.Batch{Entries: entries}
	for _, e := range entries {
		b.Position = approval.Position{Seq: e.Born, At: e.Updated}
		b.Events = append(b.Events, approval.Event{Number: e.Born + 1, At: e.Updated, Name: approval.EventAsked, ID: e.ID})
	}
	if err := s.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func namesOf(entries []approval.Entry) string {
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Package.Name)
	}
	return fmt.Sprint(all)
}

// TestStore is the suite. open makes an empty store; reopen gives what is there
// after the last one was closed or lost, or is nil for a store that forgets.
func TestStore(t *testing.T, open func(t *testing.T) (s approval.Store, reopen func() approval.Store)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, approval.Store){
		"round trip": testRoundTrip, "list": testList, "answers": testAnswers, "due": testDue, "events": testEvents, "reset": testReset, "runs": testRuns,
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t)
			test(t, s)
		})
	}
	t.Run("reopen", func(t *testing.T) {
		s, reopen := open(t)
		if reopen == nil {
			t.Skip("this store forgets")
		}
		want := newEntry(3, "kept", "r1")
		applyEntries(t, s, want)
		s = reopen()
		got, err := s.Get(t.Context(), want.ID)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
		if p, err := s.Position(t.Context()); err != nil || p.Seq != 3 || !p.At.Equal(want.Updated) {
			t.Error(p, err)
		}
	})
}

func testRoundTrip(t *testing.T, s approval.Store) {
	t.Helper()
	if p, err := s.Position(t.Context()); err != nil || !p.At.IsZero() {
		t.Errorf("an empty store stands at %v, %v", p, err)
	}
	if _, err := s.Get(t.Context(), "ap-nobody"); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
	want := newEntry(0, "first", "r1") // the log's first record has the number 0
	applyEntries(t, s, want)
	if p, err := s.Position(t.Context()); err != nil || p.Seq != 0 || !p.At.Equal(want.Updated) {
		t.Error(p, err)
	}
	got, err := s.Get(t.Context(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	got.Files[0].Digests[0] = "scribbled over"
	want = answeredEntry(want, approval.Denied, approval.ScopeEverywhere, time.Time{})
	want.Ended, want.Near = "ended", nil
	applyEntries(t, s, want)
	applyEntries(t, s, want) // a second time changes nothing
	got, err = s.Get(t.Context(), want.ID)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func testList(t *testing.T, s approval.Store) {
	t.Helper()
	node := newEntry(6, "six", "r3")
	node.Package.Ecosystem = pkgref.Node
	two := answeredEntry(newEntry(2, "two", "r1"), approval.Approved, approval.ScopeRun, time.Time{})
	two.Runs = append(two.Runs, approval.AskingRun{Run: "r3"})
	applyEntries(t, s, newEntry(1, "one", "r1"), two)
	applyEntries(t, s, newEntry(5, "five", "r2"), node)
	for _, c := range []struct {
		f    approval.Filter
		want string
	}{
		{approval.Filter{}, "[six five two one]"},
		{approval.Filter{Limit: 2}, "[six five]"},
		{approval.Filter{Before: 5, Limit: 1}, "[two]"},
		{approval.Filter{States: []approval.State{approval.Pending}}, "[six five one]"},
		{approval.Filter{States: []approval.State{approval.Approved, approval.Denied}}, "[two]"},
		{approval.Filter{Run: "r3"}, "[six two]"},
		{approval.Filter{Group: "apg-r1", Package: "one"}, "[one]"},
		{approval.Filter{Ecosystem: pkgref.Node}, "[six]"},
		{approval.Filter{Ecosystem: pkgref.Node, Package: "one"}, "[]"},
	} {
		got, err := s.List(t.Context(), c.f)
		if err != nil || namesOf(got) != c.want {
			t.Errorf("%+v: %s, %v; want %s", c.f, namesOf(got), err, c.want)
		}
	}
}

func testAnswers(t *testing.T, s approval.Store) {
	t.Helper()
	of := func(born uint64, run string, state approval.State, scope approval.Scope) approval.Entry {
		return answeredEntry(newEntry(born, "pkg", run), state, scope, time.Time{})
	}
	ended := of(5, "r1", approval.Approved, approval.ScopeEverywhere)
	ended.State = approval.Expired
	applyEntries(t, s, of(1, "r1", approval.Approved, approval.ScopeRun), of(2, "r2", approval.Denied, approval.ScopePolicy),
		of(3, "r3", approval.Approved, approval.ScopeEverywhere), newEntry(4, "pkg", "r1"), ended, of(7, "r4", approval.Approved, approval.ScopeOnce))
	applyEntries(t, s, answeredEntry(newEntry(6, "other", "r1"), approval.Approved, approval.ScopeEverywhere, time.Time{}))
	for _, c := range []struct {
		run, policy string
		want        []uint64
	}{
		{"r1", "sha256:p-r1", []uint64{1, 3}},
		{"r2", "sha256:p-r2", []uint64{2, 3}},
		{"r4", "sha256:p-r9", []uint64{3, 7}},
		{"r9", "sha256:p-r2", []uint64{2, 3}},
		{"sha256:p-r2", "r1", []uint64{3}},
		{"", "", []uint64{3}},
	} {
		got, err := s.Answers(t.Context(), pkgref.Ref{Ecosystem: pkgref.Python, Name: "pkg"}, c.run, c.policy)
		born := []uint64{}
		for _, e := range got {
			born = append(born, e.Born)
		}
		if err != nil || !slices.Equal(born, c.want) {
			t.Errorf("%s under %s: %v, %v; want %v", c.run, c.policy, born, err, c.want)
		}
	}
}

func testDue(t *testing.T, s approval.Store) {
	t.Helper()
	at := noon().Add(100 * time.Hour)
	endless := newEntry(4, "endless", "r1")
	endless.Expires = time.Time{}
	over := newEntry(5, "over", "r1")
	over.State = approval.Superseded
	applyEntries(t, s, newEntry(1, "one", "r1"), answeredEntry(newEntry(2, "two", "r1"), approval.Approved, approval.ScopeRun, at), newEntry(3, "three", "r1"), endless, over,
		answeredEntry(newEntry(6, "forever", "r1"), approval.Approved, approval.ScopeRun, time.Time{}))
	first := noon().Add(time.Second + time.Hour)
	for _, c := range []struct {
		now   time.Time
		limit int
		want  string
		next  time.Time
	}{
		{first.Add(-1), 9, "[]", first},
		{first, 9, "[one]", first.Add(2 * time.Second)},
		{at.Add(-1), 1, "[one]", first.Add(2 * time.Second)},
		{at.Add(-1), 9, "[one three]", at},
		{at, 9, "[one three two]", time.Time{}},
	} {
		due, next, err := s.Due(t.Context(), c.now, c.limit)
		if err != nil || namesOf(due) != c.want || !next.Equal(c.next) {
			t.Errorf("at %v: %s, %v, %v; want %s, %v", c.now, namesOf(due), next, err, c.want, c.next)
		}
	}
}

func testEvents(t *testing.T, s approval.Store) {
	t.Helper()
	applyEntries(t, s, newEntry(0, "zero", "r1"), newEntry(4, "four", "r1"))
	applyEntries(t, s, newEntry(9, "nine", "r1"))
	all, err := s.Events(t.Context(), 0, 10)
	want := []approval.Event{
		{Number: 1, At: noon(), Name: approval.EventAsked, ID: "ap-000000"},
		{Number: 5, At: noon().Add(4 * time.Second), Name: approval.EventAsked, ID: "ap-000004"},
		{Number: 10, At: noon().Add(9 * time.Second), Name: approval.EventAsked, ID: "ap-000009"},
	}
	if diff := cmp.Diff(want, all); err != nil || diff != "" {
		t.Error(err, diff)
	}
	some, err := s.Events(t.Context(), 1, 1)
	if diff := cmp.Diff(want[1:2], some); err != nil || diff != "" {
		t.Error(err, diff)
	}
	none, err := s.Events(t.Context(), 10, 1)
	if diff := cmp.Diff([]approval.Event{}, none, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func testReset(t *testing.T, s approval.Store) {
	t.Helper()
	applyEntries(t, s, newEntry(1, "one", "r1"), answeredEntry(newEntry(2, "two", "r1"), approval.Approved, approval.ScopeEverywhere, time.Time{}))
	if err := s.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := s.List(t.Context(), approval.Filter{})
	answers, err2 := s.Answers(t.Context(), pkgref.Ref{Ecosystem: pkgref.Python, Name: "two"}, "r1", "")
	events, err3 := s.Events(t.Context(), 0, 1)
	p, err4 := s.Position(t.Context())
	if err := errors.Join(err, err2, err3, err4); err != nil || len(found)+len(answers)+len(events) > 0 || !p.At.IsZero() {
		t.Error(err, found, answers, events, p)
	}
	applyEntries(t, s, newEntry(1, "one", "r1")) // and begins anew
}

// testRuns: runs are added, and everybody who asked is found.
func testRuns(t *testing.T, s approval.Store) {
	t.Helper()
	e := newEntry(1, "one", "r0")
	applyEntries(t, s, e)
	for i := range 70 {
		e.Runs = append(e.Runs, approval.AskingRun{Run: fmt.Sprintf("more-%d", i), Policy: "p"})
	}
	applyEntries(t, s, e)
	got, err := s.Get(t.Context(), e.ID)
	if diff := cmp.Diff(e.Runs, got.Runs); err != nil || diff != "" {
		t.Error(err, diff)
	}
	found, err := s.List(t.Context(), approval.Filter{Run: "more-69"})
	if err != nil || len(found) != 1 {
		t.Error(found, err)
	}
}
