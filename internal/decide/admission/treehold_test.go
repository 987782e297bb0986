package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/planning"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// rehearser resolves "pip install rich" in a plan's run of its own.
type rehearser struct {
	house *waitingHouse
	calls atomic.Int32
	names []string      // that its resolver chooses
	fails error         // of a rehearsal
	began chan struct{} // if not nil it waits after it began, until its time is over
	idle  bool          // no install runs
}

func (r *rehearser) Installs(string, pkgref.Ecosystem) []planning.Install {
	if r.idle {
		return nil
	}
	return []planning.Install{{Key: "cmd/0", Command: "pip install rich"}}
}

func (r *rehearser) Rehearse(ctx context.Context, sandbox string, _ planning.Install, weigh func(context.Context, string, []planning.Choice, []string) error) error {
	r.calls.Add(1)
	if r.began != nil {
		close(r.began)
		<-ctx.Done()
		return ctx.Err()
	}
	if r.fails != nil {
		return r.fails
	}
	run := r.house.run()
	run.Sandbox, run.Run, run.Plan = "plan-of-"+sandbox, "tree-1", true
	if err := r.house.Register(run); err != nil {
		return err
	}
	defer r.house.Unregister(run.Sandbox)
	var choices []planning.Choice
	for _, name := range r.names {
		page := indexOf(name, "page of "+name, wheel(name, "1.0"))
		page.Sandbox = run.Sandbox
		if _, err := r.house.Index(ctx, page); err != nil {
			return err
		}
		choices = append(choices, choice(name, "1.0"))
	}
	return weigh(ctx, run.Run, choices, []string{"a note of the resolver"})
}

// resolves makes the house anew, with somebody who finds out what installs bring.
func (h *waitingHouse) resolves(tb testing.TB, trees planning.Trees) {
	tb.Helper()
	h.Unregister("sb1")
	h.config.Trees = trees
	h.Controller = New(h.config)
	must(tb, h.Register(h.run()))
}

func newTreeHouse(t *testing.T, onHold string, limits Limits, names ...string) (*waitingHouse, *rehearser) {
	t.Helper()
	h := newWaitingHouse(t, onHold, limits)
	r := &rehearser{house: h, names: names}
	h.resolves(t, r)
	t.Cleanup(func() { h.Unregister("sb1") })
	return h, r
}

// However many files of an install are asked for at once, it is resolved once, and what
// waits is one request.
func TestAnInstallIsOneRequest(t *testing.T) {
	h, r := newTreeHouse(t, "freeze", Limits{}, "rich", "pygments", "mdurl", "requests", "evil")
	names := []string{"mdurl", "rich", "pygments"}
	var all []<-chan begun
	for _, name := range names {
		all = append(all, h.begin(t.Context(), awaiting(name, "1.0")))
	}
	for range names {
		<-h.holder.signal
	}
	if n := r.calls.Load(); n != 1 || len(h.queue.trees) != 1 {
		t.Fatalf("it was resolved %d times, %d trees", n, len(h.queue.trees))
	}
	tree := h.queue.trees[0]
	var members []string
	for _, m := range tree.Members {
		members = append(members, m.Package.Name)
		if m.Run != "run1" || m.Sandbox != "sb1" || m.ByPerson || len(m.Files) != 1 {
			t.Errorf("a member is %+v", m)
		}
	}
	if slices.Sort(members); !slices.Equal(members, []string{"mdurl", "pygments", "rich"}) || tree.Root != python("rich", "1.0") {
		t.Errorf("the tree of %v has %v", tree.Root, members)
	}
	if text := strings.Join(tree.Notes, "; "); !strings.Contains(text, "evil 1.0 is not in it: it is refused") ||
		!strings.Contains(text, "1 more releases that it brings are admitted already") || !strings.Contains(text, "a note of the resolver") {
		t.Errorf("the notes are %q", text)
	}
	for _, hold := range h.holder.held {
		if hold.Tree != "ap-tree" {
			t.Errorf("the sandbox waits for %+v", hold)
		}
	}
	for _, request := range h.queue.list() {
		h.queue.answer(t, request.ID, approval.Approved)
	}
	for i, done := range all {
		if got := <-done; got.err != nil || !got.answer.Decision.Allowed() {
			t.Errorf("%s: %+v, %v", names[i], got.answer, got.err)
		}
	}
	for _, rec := range h.records(t, audit.Pending) {
		if rec.Approval != "ap-tree" {
			t.Errorf("on record as %s", rec.Approval)
		}
	}
}

// A release that was not shown is held by itself, and says so.
func TestWhatATreeDidNotShowIsHeld(t *testing.T) {
	h, _ := newTreeHouse(t, "fail", Limits{}, "rich", "mdurl")
	a, err := h.Await(t.Context(), awaiting("rich", "1.0"))
	if err != nil || a.Approval != "ap-tree" {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, request := range h.queue.list() {
		h.queue.answer(t, request.ID, approval.Approved)
	}
	for _, ask := range []door.AwaitAsk{awaiting("surprise", "1.0"), awaiting("mdurl", "2.0")} {
		a, err = h.Await(t.Context(), ask)
		if err != nil || a.Decision.Effect != policy.Hold || a.Approval == "ap-tree" {
			t.Fatalf("%s: %+v, %v", ask.Package, a, err)
		}
		filed := h.queue.list()
		if last := filed[len(filed)-1]; last.Package != ask.Package || !strings.Contains(strings.Join(last.Notes, ""), `it was not among what "pip install rich" was found to bring (ap-tree)`) {
			t.Errorf("it was filed as %+v", last)
		}
	}
	if a, err := h.Await(t.Context(), awaiting("mdurl", "1.0")); err != nil || !a.Decision.Allowed() {
		t.Errorf("a member that was approved: %+v, %v", a, err)
	}
}

// An install that can't be resolved is asked for as before, with all metadata that was read
// meanwhile, and says why.
func TestAnInstallThatCannotBeResolved(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		set    func(*rehearser)
		why    string
	}{
		{Limits{}, func(r *rehearser) { r.fails = fault.New(fault.ErrUnavailable, "sh ended with 1") }, `it is not known what else "pip install rich" brings: sh ended with 1`},
		{Limits{Tree: time.Millisecond}, func(r *rehearser) { r.began = make(chan struct{}) }, "to find it out took longer than 1ms"},
		{Limits{}, func(r *rehearser) { r.names = []string{"requests"} }, "nothing that its resolver chose waits"},
		{Limits{}, func(r *rehearser) { r.idle = true }, "no install command is known that it is part of"},
	} {
		h, r := newTreeHouse(t, "fail", c.limits)
		c.set(r)
		for _, name := range []string{"rich", "pygments"} {
			if _, err := h.Preview(t.Context(), previewing(name, "1.0")); err != nil {
				t.Fatal(err)
			}
		}
		a, err := h.Await(t.Context(), awaiting("rich", "1.0"))
		if err != nil || a.Decision.Effect != policy.Hold || a.Approval == "" || a.Approval == "ap-tree" {
			t.Fatalf("%s: %+v, %v", c.why, a, err)
		}
		filed := h.queue.list()
		if len(filed) != 2 {
			t.Fatalf("%s: filed are %+v", c.why, filed)
		}
		if r.idle {
			continue // its metadata was filed as it was read
		}
		rich := slices.IndexFunc(filed, func(r approval.Request) bool { return r.ID == a.Approval })
		if rich < 0 {
			t.Fatalf("%s: what waits is not among what was filed: %+v", c.why, filed)
		}
		if text := strings.Join(filed[rich].Notes, ""); !strings.Contains(text, c.why) {
			t.Errorf("it says %q, not %q", text, c.why)
		}
	}
}

// The metadata that a resolver reads while its install is resolved waits for that: what it
// reads and does not choose is asked for by nobody.
func TestWhatAResolverPassesOverIsNotAskedFor(t *testing.T) {
	h, _ := newTreeHouse(t, "fail", Limits{}, "rich")
	read := previewing("rich", "0.9") // tried, and given up
	if _, err := h.Preview(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Await(t.Context(), awaiting("rich", "1.0")); err != nil {
		t.Fatal(err)
	}
	if filed := h.queue.list(); len(filed) != 1 || filed[0].Package != python("rich", "1.0") {
		t.Errorf("filed are %+v", filed)
	}
}

// A queue that takes no tree leaves each release to its own request.
func TestATreeThatTheQueueDoesNotTake(t *testing.T) {
	h, r := newTreeHouse(t, "fail", Limits{}, "rich", "mdurl")
	h.config.Approvals = treeless{h.queue}
	h.resolves(t, r)
	a, err := h.Await(t.Context(), awaiting("rich", "1.0"))
	filed := h.queue.list()
	if err != nil || a.Approval != "ap-1" || len(filed) != 1 || !strings.Contains(strings.Join(filed[0].Notes, ""), "too many") {
		t.Errorf("%+v, %v: %+v", a, err, filed)
	}
}

type treeless struct{ *queue }

func (treeless) AskTree(context.Context, approval.TreeAsk) (approval.Request, error) {
	return approval.Request{}, fault.New(fault.ErrForbidden, "these are too many")
}

// The client that waits may go, the sandbox may end: neither is waited for.
func TestARehearsalEndsWithItsSandbox(t *testing.T) {
	h, r := newTreeHouse(t, "freeze", Limits{})
	r.began = make(chan struct{})
	ctx, leave := context.WithCancel(t.Context())
	stays := h.begin(t.Context(), awaiting("rich", "1.0"))
	<-r.began // by who stays: it must be in before its sandbox ends
	gone := h.begin(ctx, awaiting("rich", "1.0"))
	leave()
	if got := <-gone; !errors.Is(got.err, context.Canceled) {
		t.Errorf("who went away got %+v, %v", got.answer, got.err)
	}
	h.Unregister("sb1")
	<-h.holder.signal // it is held as before, until its stream ends
	h.queue.answer(t, "ap-1", approval.Denied)
	if got := <-stays; !errors.Is(got.err, fault.ErrForbidden) {
		t.Errorf("who stayed got %+v, %v", got.answer, got.err)
	}
	if n := r.calls.Load(); n != 1 {
		t.Errorf("%d rehearsals", n)
	}
}

// A sandbox has so many rehearsals at most.
func TestRehearsalsAreBounded(t *testing.T) {
	h, _ := newTreeHouse(t, "fail", Limits{})
	many := &manyInstalls{}
	h.resolves(t, many)
	for range planning.MaxRehearsals + 5 {
		if _, err := h.Await(t.Context(), awaiting("rich", "1.0")); err != nil {
			t.Fatal(err)
		}
	}
	if n := many.rehearsed.Load(); n != planning.MaxRehearsals {
		t.Errorf("%d rehearsals of one sandbox", n)
	}
}

// manyInstalls has another install each time.
type manyInstalls struct{ asked, rehearsed atomic.Int32 }

func (m *manyInstalls) Installs(string, pkgref.Ecosystem) []planning.Install {
	return []planning.Install{{Key: fmt.Sprint(m.asked.Add(1)), Command: "pip install rich"}}
}

func (m *manyInstalls) Rehearse(context.Context, string, planning.Install, func(context.Context, string, []planning.Choice, []string) error) error {
	m.rehearsed.Add(1)
	return fault.New(fault.ErrUnavailable, "no")
}

// In a rehearsal no code of what waits may run: what would be built is not shown, and a
// plan that a person asked for has it.
func TestARehearsalBuildsNothing(t *testing.T) {
	for _, rehearsal := range []bool{true, false} {
		h := newWaitingHouse(t, "fail", Limits{})
		h.Unregister("sb1")
		run := h.run()
		run.Plan, run.Rehearsal = true, rehearsal
		must(t, h.Register(run))
		ask := serving("rich", "1.0")
		ask.File.Name, ask.File.Kind = "rich-1.0.tar.gz", policy.KindSdist
		a, err := h.Serve(t.Context(), ask)
		if err != nil || a.Decision.Allowed() == rehearsal {
			t.Errorf("rehearsal %t: %+v, %v", rehearsal, a.Decision, err)
		}
		if a, err := h.Serve(t.Context(), serving("rich", "1.0")); err != nil || !a.Decision.Allowed() {
			t.Errorf("rehearsal %t: a wheel: %+v, %v", rehearsal, a.Decision, err)
		}
	}
}

// Of an upgrade a person is told from which version, and which files are new.
func TestAnUpgradeIsComparedWithWhatTheRunHas(t *testing.T) {
	h := newWaitingHouse(t, "fail", Limits{})
	served := serving("requests", "2.31.0")
	served.Paths = []string{"requests/__init__.py", "requests-2.31.0.dist-info/METADATA"}
	if a, err := h.Serve(t.Context(), served); err != nil || !a.Decision.Allowed() {
		t.Fatalf("%+v, %v", a, err)
	}
	newer := func(version string, paths ...string) evidence.Evidence {
		t.Helper()
		ask := awaiting("requests", version)
		ask.File.Name, ask.File.Kind, ask.Paths = "requests-"+version+".tar.gz", policy.KindSdist, paths // held for its kind
		if _, err := h.Await(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
		filed := h.queue.list()
		return filed[len(filed)-1].Evidence
	}
	e := newer("2.32.0", "requests/__init__.py", "requests/evil.pth", "requests-2.32.0.dist-info/METADATA")
	if e.Installed != "2.31.0" || !slices.Equal(e.NewFiles, []string{"requests/evil.pth"}) || e.FilesUnknown {
		t.Errorf("of the upgrade is told %+v", e)
	}
	if e := newer("2.33.0"); e.Installed != "2.31.0" || !e.FilesUnknown {
		t.Errorf("where the files are not known is told %+v", e)
	}
	if e.Unchecked == nil {
		t.Error("what was not checked is not told")
	}
}
