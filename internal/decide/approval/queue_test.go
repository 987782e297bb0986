package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestLife: asked, joined, approved, used, revoked; each on record before it
// counts, with what an auditor needs.
func TestLife(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	first := in.ask(t, ask("r1", wheel("sha256:aa")))
	if first.State != approval.Pending || !strings.HasPrefix(first.ID, "ap-") || len(first.ID) != 9 || !strings.HasPrefix(first.Group, "apg-") {
		t.Fatalf("%+v", first)
	}
	if again := in.ask(t, ask("r1", wheel("sha256:aa"))); again.ID != first.ID || again.Asked != 1 {
		t.Errorf("a retry: %+v", again)
	}
	joined := in.ask(t, ask("r2", wheel("sha256:aa"), sdist("sha256:bb")))
	if joined.ID != first.ID || joined.Asked != 2 || len(joined.Files) != 2 || joined.Asks[1].Task != "make a table" {
		t.Errorf("%+v", joined)
	}
	in.approve(t, approval.ScopeRun, 0, first.ID)
	for _, c := range []struct {
		run, digest string
		want        bool
	}{
		{"r1", "sha256:aa", true},
		{"r2", "sha256:bb", true},
		{"r1", "sha256:cc", false}, // another file, or another content
		{"r3", "sha256:aa", false}, // another run
	} {
		if got := in.admits(t, c.run, c.digest); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if third := in.ask(t, ask("r3", wheel("sha256:aa"))); third.ID == first.ID || third.State != approval.Pending {
		t.Errorf("another run does not ask again: %+v", third)
	}
	if met := in.ask(t, ask("r2", sdist("sha256:bb"))); met.ID != first.ID || met.State != approval.Approved {
		t.Errorf("an ask that came after the answer: %+v", met)
	}
	if _, err := in.Revoke(t.Context(), "eve", first.ID, "no more"); err != nil {
		t.Fatal(err)
	}
	if in.admits(t, "r1", "sha256:aa") {
		t.Error("what was revoked holds")
	}
	want := []audit.Outcome{audit.Pending, audit.Pending, audit.Approved, audit.Pending, audit.Expired}
	if diff := cmp.Diff(want, in.outcomes()); diff != "" {
		t.Error(diff)
	}
	r := in.log.All()[2]
	r.Time, r.Seq = time.Time{}, 0
	if diff := cmp.Diff(audit.Record{
		Kind: audit.KindApproval, Outcome: audit.Approved, Approval: first.ID, Ecosystem: "python", Package: "rich", InstalledVersion: "13.7.1",
		SourceURL: "https://index.example/simple/", User: "bob", Reason: "fine",
		Detail: map[string]string{"event": "approved", "scope": "run", "digests": "sha256:aa sha256:bb", "revision": "2"},
	}, r); diff != "" {
		t.Error(diff)
	}
}

// TestScopes: for whom an answer holds.
func TestScopes(t *testing.T) {
	t.Parallel()
	for scope, want := range map[approval.Scope][3]bool{
		approval.ScopeRun: {true, false, false}, approval.ScopePolicy: {true, true, false}, approval.ScopeEverywhere: {true, true, true},
	} {
		in := install(t, approval.Limits{})
		r := in.ask(t, ask("r1", wheel("sha256:aa")))
		in.approve(t, scope, 0, r.ID)
		got := [3]bool{}
		for i, who := range [][2]string{{"r1", "sha256:policy-of-r1"}, {"r2", "sha256:policy-of-r1"}, {"r3", "sha256:policy-of-r3"}} {
			grants, _, err := in.Grants(t.Context(), rich(), asks(who[0], who[1]))
			if err != nil {
				t.Fatal(err)
			}
			got[i] = len(grants) == 1 && grants[0].Upstream == "https://index.example/simple/"
		}
		if got != want {
			t.Errorf("%s: %v, want %v", scope, got, want)
		}
	}
}

// TestSuperseded: a known file with another digest asks again, and what was
// shown can't be approved any more.
func TestSuperseded(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	old := in.ask(t, ask("r1", wheel("sha256:aa")))
	fresh := in.ask(t, ask("r1", wheel("sha256:ee")))
	got, err := in.Get(t.Context(), old.ID)
	if err != nil || got.State != approval.Superseded || got.ReplacedBy != fresh.ID || !strings.Contains(got.Ended, "rich-13.7.1-py3-none-any.whl") {
		t.Errorf("%+v %v", got, err)
	}
	_, err = in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{old.ID}, State: approval.Approved})
	wantErr(t, err, fault.ErrConflict, old.ID+" was superseded by "+fresh.ID+": "+got.Ended)
	// More digests of one file do not contradict each other.
	more := wheel("sha256:ee")
	more.Digests = append(more.Digests, "sha512:ff")
	if r := in.ask(t, ask("r1", more)); r.ID != fresh.ID || len(r.Files[0].Digests) != 2 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]audit.Outcome{audit.Pending, audit.Superseded, audit.Pending, audit.Failed, audit.Pending}, in.outcomes()); diff != "" {
		t.Error(diff)
	}
}

// TestUnknownFile: a file that came after the approval is a new request.
func TestUnknownFile(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	first := in.ask(t, ask("r1", wheel("sha256:aa")))
	in.approve(t, approval.ScopeEverywhere, 0, first.ID)
	second := in.ask(t, ask("r1", sdist("sha256:bb")))
	if second.ID == first.ID || second.State != approval.Pending || in.admits(t, "r1", "sha256:bb") {
		t.Errorf("%+v", second)
	}
	want := []string{"1 of its files were not there when " + first.ID + " was approved"}
	if diff := cmp.Diff(want, second.Evidence.Changes); diff != "" || second.Evidence.LastApproved != "13.7.1" {
		t.Error(diff, second.Evidence.LastApproved)
	}
	changed := in.ask(t, ask("r2", wheel("sha256:ee"), sdist("sha256:bb")))
	if changed.ID != second.ID || !slices.Contains(changed.Evidence.Changes, want[0]) {
		t.Errorf("%+v", changed)
	}
}

// TestChangesSinceLastApproved: the evidence of the next version.
func TestChangesSinceLastApproved(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	a := ask("r1", wheel("sha256:aa"))
	a.Evidence = evidence.Evidence{Requires: []string{"pygments >=2", "markdown-it-py"}, Maintainer: "will", Scripts: []string{"old"}}
	in.approve(t, approval.ScopeRun, 0, in.ask(t, a).ID)
	a.Package.Version = "14.0.0"
	a.Evidence = evidence.Evidence{Requires: []string{"pygments >=3", "telemetry"}, Maintainer: "mallory", Scripts: []string{"old", "postinstall: node x.js"}}
	got := in.ask(t, a).Evidence
	want := []string{
		"requires telemetry, which it did not before", "requires markdown-it-py no more",
		"runs something at installation that it did not before: postinstall: node x.js", "its maintainer was will and is mallory",
	}
	if diff := cmp.Diff(want, got.Changes); diff != "" || got.LastApproved != "13.7.1" {
		t.Error(diff, got.LastApproved)
	}
}

// TestOneEffect: a replay, a double click, opposite answers, an unknown id: the
// first stands, and each attempt is on record with who made it.
func TestOneEffect(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	r := in.ask(t, ask("r1", wheel("sha256:aa")))
	in.approve(t, "", 0, r.ID)
	at := mustGet(t, in, r.ID).Answer.At.Format(time.RFC3339)
	stands := r.ID + " was approved by bob at " + at + " already, and the first answer stands; revoke it to be asked again"
	for _, state := range []approval.State{approval.Approved, approval.Denied} {
		_, err := in.Answer(t.Context(), "eve", approval.Verdict{IDs: []string{r.ID}, State: state, Scope: approval.ScopeEverywhere})
		wantErr(t, err, fault.ErrConflict, stands)
	}
	_, err := in.Answer(t.Context(), "eve", approval.Verdict{IDs: []string{"ap-nobody"}, State: approval.Approved})
	wantErr(t, err, fault.ErrNotFound, `there is no request "ap-nobody"`)
	_, err = in.Answer(t.Context(), "eve", approval.Verdict{IDs: []string{"apg-nobody"}, State: approval.Approved})
	wantErr(t, err, fault.ErrNotFound, `no request of a group "apg-nobody" waits for an answer`)
	if _, err = in.Revoke(t.Context(), "eve", r.ID, ""); err != nil {
		t.Fatal(err)
	}
	_, err = in.Revoke(t.Context(), "eve", r.ID, "")
	wantErr(t, err, fault.ErrConflict, r.ID+" has expired: revoked by eve; it is asked again when a run wants it")
	_, err = in.Answer(t.Context(), "eve", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved})
	wantErr(t, err, fault.ErrConflict, r.ID+" has expired: revoked by eve; it is asked again when a run wants it")
	refused := 0
	for _, rec := range in.log.All() {
		if rec.Outcome == audit.Failed && rec.User == "eve" && rec.Approval != "" && strings.HasPrefix(rec.Reason, "An answer was refused: ") {
			refused++
		}
	}
	if refused != 6 {
		t.Errorf("%d refusals on record", refused)
	}
	if again := in.ask(t, ask("r1", wheel("sha256:aa"))); again.ID == r.ID || again.State != approval.Pending {
		t.Errorf("%+v", again)
	}
}

func mustGet(t *testing.T, in *installation, id string) approval.Request {
	t.Helper()
	r, err := in.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAllOrNone: one request that can't be answered keeps the others unanswered;
// so does a log that fails in the middle, and then the log says what of it did
// not happen.
func TestAllOrNone(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	ids := []string{in.ask(t, named("one")).ID, in.ask(t, named("two")).ID, in.ask(t, named("three")).ID}
	done := in.ask(t, named("done")).ID
	in.approve(t, "", 0, done)
	_, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: append(slices.Clone(ids), done), State: approval.Denied})
	if !errors.Is(err, fault.ErrConflict) {
		t.Error(err)
	}
	n := 0
	in.log.FailWhen(func(audit.Record) error {
		if n++; n > 2 {
			return errors.New("no space left")
		}
		return nil
	})
	verdict := approval.Verdict{IDs: ids, State: approval.Denied}
	_, err = in.Answer(t.Context(), "bob", verdict)
	if !errors.Is(err, fault.ErrUnavailable) || !strings.HasPrefix(err.Error(), "the change can't be recorded, so nothing was changed") {
		t.Error(err)
	}
	for _, id := range ids {
		if s := in.state(t, id); s != approval.Pending {
			t.Errorf("%s is %s", id, s)
		}
	}
	in.log.FailWhen(nil)
	in.restart(t)
	for _, id := range ids {
		if s := in.state(t, id); s != approval.Pending {
			t.Errorf("after a restart %s is %s", id, s)
		}
	}
	if answered, err := in.Answer(t.Context(), "bob", verdict); err != nil || len(answered) != 3 || answered[2].State != approval.Denied {
		t.Error(answered, err)
	}
	undone := 0
	for _, r := range in.log.All() {
		if r.Detail["event"] == "undone" {
			undone++
		}
	}
	if undone != 2 {
		t.Errorf("the log takes %d records back", undone)
	}
}

func named(name string) approval.Ask {
	a := ask("r1", approval.File{Name: name + ".whl", Digests: []string{"sha256:" + name}})
	a.Package.Name = name
	return a
}

// TestBoundToWhatWasShown: files that came while the person read are told, and
// nothing is approved.
func TestBoundToWhatWasShown(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	r := in.ask(t, ask("r1", wheel("sha256:aa")))
	in.ask(t, ask("r1", sdist("sha256:bb")))
	verdict := approval.Verdict{IDs: []string{r.ID}, State: approval.Approved, Digests: map[string][]string{r.ID: {"sha256:aa"}}}
	_, err := in.Answer(t.Context(), "bob", verdict)
	wantErr(t, err, fault.ErrConflict, r.ID+" has changed since it was shown: the file rich-13.7.1.tar.gz (sha256:bb) is new; look at it again")
	verdict.Digests[r.ID] = []string{"sha256:aa", "sha256:bb", "sha256:cc"}
	_, err = in.Answer(t.Context(), "bob", verdict)
	wantErr(t, err, fault.ErrConflict, r.ID+" has changed since it was shown: no file of it has the digest sha256:cc; look at it again")
	verdict.Digests[r.ID] = []string{"sha256:bb", "sha256:aa"}
	if _, err := in.Answer(t.Context(), "bob", verdict); err != nil {
		t.Error(err)
	}
}

// TestNothingToBindTo: an approval needs a digest that nobody can forge; a
// denial does not.
func TestNothingToBindTo(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	r := in.ask(t, ask("r1", wheel("sha1:aa"), approval.File{Name: "x"}))
	_, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved})
	if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "bound to nothing") {
		t.Error(err)
	}
	if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Denied}); err != nil {
		t.Error(err)
	}
	if g := in.granted(t, "r1"); len(g) != 1 || !g[0].Denied || g[0].By != "bob" {
		t.Errorf("%+v", g)
	}
}

func TestBadVerdicts(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	id := in.ask(t, ask("r1", wheel("sha256:aa"))).ID
	for _, v := range []approval.Verdict{
		{IDs: []string{id}, State: approval.Pending},
		{IDs: []string{id}, State: approval.Approved, Scope: "world"},
		{IDs: []string{id}, State: approval.Approved, Lasts: -1},
		{IDs: []string{id}, State: approval.Approved, Lasts: 1 << 62},
		{IDs: []string{id}, State: approval.Approved, Reason: strings.Repeat("x", 2001)},
		{IDs: []string{id}, State: approval.Approved, Digests: map[string][]string{"ap-other": nil}},
		{State: approval.Approved},
	} {
		if _, err := in.Answer(t.Context(), "bob", v); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", v, err)
		}
	}
	if s := in.state(t, id); s != approval.Pending {
		t.Error(s)
	}
}

func TestBadAsks(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	for what, spoil := range map[string]func(*approval.Ask){
		"no version":      func(a *approval.Ask) { a.Package.Version = "" },
		"not canonical":   func(a *approval.Ask) { a.Package.Name = "Rich" },
		"no run":          func(a *approval.Ask) { a.Run = "" },
		"a strange group": func(a *approval.Ask) { a.Group = "apg-\x1b[2J" },
		"twice":           func(a *approval.Ask) { a.Files = append(a.Files, a.Files...) },
		"no digest":       func(a *approval.Ask) { a.Files[0].Digests = []string{"aa bb"} },
		"too many files":  func(a *approval.Ask) { a.Files = make([]approval.File, 501) },
	} {
		a := ask("r1", wheel("sha256:aa"))
		spoil(&a)
		if _, err := in.Ask(t.Context(), a); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if n := len(in.log.All()); n > 0 {
		t.Errorf("%d records", n)
	}
}

// TestHostileText: whatever others write fits a record and comes back as it is.
func TestHostileText(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	nasty := strings.Repeat("\x00\x1b[2J\u202e\"\\\xff", 2000)
	a := ask("r1")
	a.Task, a.Because, a.Reason, a.PolicyName, a.User = nasty, nasty, nasty, nasty, nasty
	for range 100 {
		a.WantedBy = append(a.WantedBy, nasty)
		a.Evidence.Requires = append(a.Evidence.Requires, nasty)
		a.Evidence.Findings = append(a.Evidence.Findings, nasty)
	}
	a.Evidence.Summary = nasty
	for i := range 500 {
		a.Files = append(a.Files, approval.File{Name: fmt.Sprintf("%d%s", i, strings.Repeat("\x01", 290)), Digests: []string{fmt.Sprintf("sha256:%064d", i)}})
	}
	r := in.ask(t, a)
	if len(r.Files) != 500 || len(r.Asks[0].Because) > 2000 {
		t.Errorf("%d files, a reason of %d bytes", len(r.Files), len(r.Asks[0].Because))
	}
	in.approve(t, approval.ScopeRun, 0, r.ID)
	want := mustGet(t, in, r.ID)
	if err := in.store.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	in.restart(t) // from the log alone
	if diff := cmp.Diff(want, mustGet(t, in, r.ID)); diff != "" {
		t.Error(diff)
	}
}

// TestCaps: a flood is grouped and capped; it is on record once for a run; room
// that is made can be used.
func TestCaps(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{PerRun: 3, Pending: 5, PerToken: 5, Sure: 5})
	from := func(run, name string) (approval.Request, error) {
		a := named(name)
		a.Run = run
		return in.Ask(t.Context(), a)
	}
	var groups []string
	for i := range 3 {
		r, err := from("r1", fmt.Sprintf("a%d", i))
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, r.Group)
	}
	if len(slices.Compact(groups)) != 1 {
		t.Errorf("one burst has the groups %v", groups)
	}
	for range 5 {
		if _, err := from("r1", "more"); !errors.Is(err, fault.ErrForbidden) {
			t.Error(err)
		}
	}
	if _, err := from("r1", "a1"); err != nil {
		t.Errorf("what waits already can't be joined: %v", err)
	}
	for i := range 2 {
		if r, err := from("r2", fmt.Sprintf("b%d", i)); err != nil || r.Group == groups[0] {
			t.Error(r.Group, err)
		}
	}
	if _, err := from("r3", "c"); !errors.Is(err, fault.ErrForbidden) {
		t.Error(err)
	}
	exceeded := map[string]int{}
	for _, r := range in.log.All() {
		if r.Outcome == audit.Exceeded {
			exceeded[r.Run]++
		}
	}
	if diff := cmp.Diff(map[string]int{"r1": 1, "r3": 1}, exceeded); diff != "" {
		t.Error(diff)
	}
	if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{groups[0]}, State: approval.Denied}); err != nil {
		t.Fatal(err)
	}
	if _, err := from("r1", "more"); err != nil {
		t.Errorf("no room after the answer: %v", err)
	}
}

// TestNearNames: of two names that are almost the same in one burst, each tells
// the other.
func TestNearNames(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	for _, name := range []string{"requests", "reqeusts", "request", "numpy", "python-dateutil", "pythondateutil", "py", "pyx"} {
		in.ask(t, named(name))
	}
	page, next, err := in.List(t.Context(), approval.Filter{})
	if err != nil || next != 0 {
		t.Fatal(next, err)
	}
	got := map[string]string{}
	for _, r := range page {
		if len(r.Near) > 0 {
			got[r.Package.Name] = strings.Join(r.Near, " ")
		}
	}
	if diff := cmp.Diff(map[string]string{
		"requests": "reqeusts request", "reqeusts": "requests", "request": "requests",
		"python-dateutil": "pythondateutil", "pythondateutil": "python-dateutil",
	}, got); diff != "" {
		t.Error(diff)
	}
}

// TestPages: newest first, and nothing is left out or told twice.
func TestPages(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	for i := range 7 {
		in.ask(t, named(fmt.Sprintf("p%d", i)))
	}
	var got []string
	f := approval.Filter{Limit: 3}
	for {
		page, next, err := in.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			got = append(got, r.Package.Name)
		}
		if f.Before = next; next == 0 {
			break
		}
	}
	if s := strings.Join(got, " "); s != "p6 p5 p4 p3 p2 p1 p0" {
		t.Error(s)
	}
}

// TestGeneration changes with what holds, and with nothing else.
func TestGeneration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		generation := func() string {
			_, g, err := in.Grants(t.Context(), rich(), asks("r1", "sha256:policy-of-r1"))
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		none := generation()
		r := in.ask(t, ask("r1", wheel("sha256:aa")))
		if generation() != none {
			t.Error("a pending request changes it")
		}
		in.approve(t, approval.ScopeRun, time.Hour, r.ID)
		approved := generation()
		if approved == none {
			t.Error("an approval does not change it")
		}
		in.restart(t)
		in.approve(t, approval.ScopeEverywhere, 0, in.ask(t, named("other")).ID)
		if generation() != approved {
			t.Error("a restart, or another package's approval, changes it")
		}
		time.Sleep(time.Hour)
		if generation() != none {
			t.Error("the end of an approval does not change it")
		}
	})
}

// TestConcurrentAsks: many goroutines ask for few releases; there is one request
// for each, and the log alone gives the same queue.
func TestConcurrentAsks(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	var all sync.WaitGroup
	for g := range 32 {
		all.Go(func() {
			for i := range 8 {
				a := named(fmt.Sprintf("p%d", i))
				a.Run = fmt.Sprintf("r%d", g%8)
				r, err := in.Ask(context.Background(), a)
				if err != nil {
					t.Error(err)
					return
				}
				if g%4 == 0 {
					_, err := in.Answer(context.Background(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved})
					if err != nil && !errors.Is(err, fault.ErrConflict) {
						t.Error(err)
					}
				}
				if _, _, err := in.Grants(context.Background(), a.Package, asks(a.Run, a.Policy)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	before := listed(t, in)
	waiting := map[string]int{}
	for _, r := range before {
		if r.State == approval.Pending {
			waiting[r.Package.Name]++
		}
	}
	for name, n := range waiting {
		if n > 1 {
			t.Errorf("%d requests wait for %s", n, name)
		}
	}
	if err := in.store.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	in.restart(t)
	if diff := cmp.Diff(before, listed(t, in)); diff != "" {
		t.Error(diff)
	}
}

func listed(t *testing.T, in *installation) []approval.Request {
	t.Helper()
	var all []approval.Request
	f := approval.Filter{}
	for {
		page, next, err := in.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			r.Near = nil
			all = append(all, r)
		}
		if f.Before = next; next == 0 {
			return all
		}
	}
}

// TestEvidenceComesToRest: a publisher whose files tell more than fits, and an
// agent that asks for them in turn, make no record for each ask.
func TestEvidenceComesToRest(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	var asks []approval.Ask
	for i, requires := range []int{20, 5, 20} {
		a := ask("r1", wheel("sha256:aa"), sdist("sha256:bb"))
		for n := range requires {
			a.Evidence.Requires = append(a.Evidence.Requires, fmt.Sprintf("p%d-%d ", i, n)+strings.Repeat("<", 290))
		}
		asks = append(asks, a)
	}
	for range 20 {
		for _, a := range asks {
			in.ask(t, a)
		}
	}
	if n := len(in.log.All()); n > 5 {
		t.Errorf("60 asks of one run for the same files made %d records", n)
	}
}

// TestNobodyIsShownASecret: not in what an agent, a publisher or a command wrote; what names
// the matter stays, and so does the caller's own.
func TestNobodyIsShownASecret(t *testing.T) {
	in := install(t, approval.Limits{})
	const text = "with the-secret in it"
	given := ask("run1", sdist("sha256:01"))
	given.Task, given.Because, given.Reason, given.Notes, given.WantedBy = text, text, text, []string{text}, []string{text}
	given.Evidence = evidence.Evidence{Summary: text, Scripts: []string{"ok", text}, Host: &evidence.Host{Commands: []string{text}}}
	r, err := in.Ask(t.Context(), given)
	if err != nil {
		t.Fatal(err)
	}
	if given.Notes[0] != text || given.Evidence.Scripts[1] != text || given.Evidence.Host.Commands[0] != text {
		t.Errorf("the caller's own were changed: %+v", given)
	}
	kept, err := in.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	told := []any{r, kept}
	for one, err := range in.log.Records(t.Context(), audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, one)
	}
	shown, err := json.Marshal(told)
	if err != nil || strings.Contains(string(shown), "the-secret") || strings.Count(string(shown), "with ********** in it") < 8 {
		t.Errorf("%s, %v", shown, err)
	}
}
