package approval_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func digestOf(name string) string {
	return "sha256:" + (fmt.Sprintf("%x", name) + strings.Repeat("0", 64))[:64]
}

// leaf is a release of a tree, with one wheel.
func leaf(run, name string, depth int) approval.TreeMember {
	a := ask(run, approval.File{Name: name + "-1.0-py3-none-any.whl", Kind: "wheel", Digests: []string{digestOf(name)}})
	a.Package = pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}
	return approval.TreeMember{Ask: a, Depth: depth}
}

func treeOf(run string, names ...string) approval.TreeAsk {
	tree := approval.TreeAsk{Root: pkgref.Ref{Ecosystem: pkgref.Python, Name: names[0], Version: "1.0"}, Notes: []string{"resolved in 2s"}}
	for i, name := range names {
		tree.Members = append(tree.Members, leaf(run, name, min(i, 1)))
	}
	return tree
}

func (in *installation) askTree(t *testing.T, tree approval.TreeAsk) approval.Request {
	t.Helper()
	r, err := in.AskTree(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// has tells whether a run may have the wheel of a release of a tree.
func (in *installation) has(t *testing.T, run, name string) bool {
	t.Helper()
	grants, _, err := in.Grants(t.Context(), pkgref.Ref{Ecosystem: pkgref.Python, Name: name}, asks(run, "sha256:policy-of-"+run))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if !g.Denied && g.Version == "1.0" && slices.Contains(g.Digests, digestOf(name)) {
			return true
		}
	}
	return false
}

func TestTreeIsOneRequest(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.askTree(t, treeOf("r1", "app", "lib", "tool"))
	if !r.IsTree() || r.State != approval.Pending || r.Package.Name != "app" || len(r.Members) != 3 || r.Notes[0] != "resolved in 2s" {
		t.Fatalf("the tree is %+v", r)
	}
	for _, m := range r.Members {
		if m.State != approval.Pending || m.Request == nil || m.Request.Tree != r.ID || len(m.Request.Asks) != 1 || !slices.Equal(m.Digests, []string{digestOf(m.Package.Name)}) {
			t.Errorf("a member is %+v", m)
		}
	}
	page, _, err := in.List(t.Context(), approval.Filter{States: []approval.State{approval.Pending}})
	if err != nil || len(page) != 4 {
		t.Fatalf("%d requests are listed, %v", len(page), err)
	}
	events := 0
	for e, err := range in.events(t) {
		if err != nil || e.ID != r.ID {
			t.Errorf("%v is told, %v", e, err)
		}
		events++
	}
	if events != 1 {
		t.Errorf("%d events tell of one request", events)
	}
	if in.has(t, "r1", "lib") {
		t.Error("a tree that waits admits a member")
	}
	in.mustAskFor(t, "", "r1", "alone")
	if n := in.Waiting(); n != 2 {
		t.Errorf("%d requests wait, of a tree and one more", n)
	}
	in.approve(t, approval.ScopeRun, 0, r.ID)
	if n := in.Waiting(); n != 1 {
		t.Errorf("%d requests wait, of one", n)
	}
}

func TestTreeIsAnsweredAndRevokedAsOne(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.askTree(t, treeOf("r1", "app", "lib", "tool"))
	in.restart(t)
	in.approve(t, approval.ScopeRun, 0, r.ID)
	for _, name := range []string{"app", "lib", "tool"} {
		if !in.has(t, "r1", name) {
			t.Errorf("%s was not admitted", name)
		}
	}
	if in.has(t, "r2", "lib") {
		t.Error("another run has it, too")
	}
	if s := in.state(t, r.ID); s != approval.Approved {
		t.Errorf("the tree is %s", s)
	}
	_, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Denied})
	if !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a second answer: %v", err)
	}
	if _, err := in.Revoke(t.Context(), "bob", r.ID, "no"); err != nil {
		t.Fatal(err)
	}
	if in.has(t, "r1", "app") || in.has(t, "r1", "tool") {
		t.Error("a revoked tree admits")
	}
}

// events are all that were told by now.
func (in *installation) events(t *testing.T) func(yield func(approval.Event, error) bool) {
	t.Helper()
	return func(yield func(approval.Event, error) bool) {
		for e, err := range in.Watch(t.Context(), 0) {
			if !yield(e, err) || e.Number == in.LastEvent() {
				return
			}
		}
	}
}

func TestTreeIsTheSameFromTheLog(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.askTree(t, treeOf("r1", "app", "lib"))
	in.approve(t, approval.ScopeRun, 0, r.Members[0].ID)
	before, err := in.Get(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := in.Get(t.Context(), r.ID)
	if err != nil || len(after.Members) != 2 || after.State != approval.Pending || after.Members[0].State != approval.Approved ||
		after.Members[1].State != approval.Pending || !slices.Equal(before.Members[1].Digests, after.Members[1].Digests) {
		t.Errorf("from the log it is %+v, %v", after, err)
	}
}

func TestTreeMembersAreAnsweredOneByOne(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.askTree(t, treeOf("r1", "app", "lib", "tool"))
	in.approve(t, approval.ScopeRun, 0, r.Members[1].ID)
	if !in.has(t, "r1", "lib") || in.has(t, "r1", "app") || in.state(t, r.ID) != approval.Pending {
		t.Error("one member's approval is not one member's")
	}
	if _, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.Members[2].ID}, State: approval.Denied}); err != nil {
		t.Fatal(err)
	}
	in.approve(t, approval.ScopeRun, 0, r.ID) // what is left
	if !in.has(t, "r1", "app") || in.has(t, "r1", "tool") {
		t.Error("the rest was not approved, or what was denied is")
	}
	if s := in.state(t, r.ID); s != approval.Denied {
		t.Errorf("a tree that can't be installed as it was shown is %s", s)
	}
}

// A file that came after the tree was shown is not approved with it.
func TestTreeIsApprovedAsShown(t *testing.T) {
	late := digestOf("late")
	other := approval.File{Name: "lib-1.0-cp312-linux.whl", Kind: "wheel", Digests: []string{late}}
	for _, asShown := range []bool{true, false} {
		in := install(t, approval.Limits{})
		r := in.askTree(t, treeOf("r1", "app", "lib"))
		more := leaf("r1", "lib", 0).Ask
		more.Files = []approval.File{other}
		in.ask(t, more)
		v := approval.Verdict{IDs: []string{r.ID}, State: approval.Approved}
		if asShown {
			v.Digests = map[string][]string{r.Members[0].ID: {digestOf("app")}, r.Members[1].ID: {digestOf("lib")}}
		}
		if _, err := in.Answer(t.Context(), "bob", v); err != nil {
			t.Fatal(err)
		}
		if !in.has(t, "r1", "lib") {
			t.Error("what was shown was not admitted")
		}
		grants, _, err := in.Grants(t.Context(), pkgref.Ref{Ecosystem: pkgref.Python, Name: "lib"}, asks("r1", "sha256:policy-of-r1"))
		if err != nil || slices.ContainsFunc(grants, func(g policy.Approval) bool { return slices.Contains(g.Digests, late) }) {
			t.Errorf("what was not shown was admitted: %v, %v", grants, err)
		}
		if again := in.ask(t, more); again.State != approval.Pending || again.ID == r.Members[1].ID {
			t.Errorf("the late file does not ask again: %+v", again)
		}
	}
}

// A member whose file has another digest now is another request, which the tree does not answer.
func TestTreeDoesNotAnswerWhatReplacedAMember(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.askTree(t, treeOf("r1", "app", "lib"))
	changed := leaf("r1", "lib", 0).Ask
	changed.Files[0].Digests = []string{digestOf("evil")}
	next := in.ask(t, changed)
	in.approve(t, approval.ScopeRun, 0, r.ID)
	grants, _, err := in.Grants(t.Context(), pkgref.Ref{Ecosystem: pkgref.Python, Name: "lib"}, asks("r1", "sha256:policy-of-r1"))
	if err != nil || len(grants) != 0 || in.state(t, next.ID) != approval.Pending || !in.has(t, "r1", "app") {
		t.Errorf("lib is admitted by %v, %v", grants, err)
	}
}

func TestTreeJoinsWhatWaitsAndLeavesOutWhatIsAnswered(t *testing.T) {
	in := install(t, approval.Limits{})
	alone := in.ask(t, leaf("r0", "lib", 0).Ask)
	in.ask(t, leaf("r1", "tool", 0).Ask)
	in.approve(t, approval.ScopeEverywhere, 0, in.ask(t, leaf("r0", "done", 0).Ask).ID)
	r := in.askTree(t, treeOf("r1", "app", "lib", "done", "tool"))
	if len(r.Members) != 3 || r.Members[1].ID != alone.ID {
		t.Fatalf("the tree is %+v", r.Members)
	}
	in.approve(t, approval.ScopeRun, 0, r.ID)
	if !in.has(t, "r0", "lib") || !in.has(t, "r1", "lib") || in.has(t, "r0", "app") {
		t.Error("the runs that asked are not those that have it")
	}
	if again := in.askTree(t, treeOf("r1", "app", "lib")); again.State != approval.Approved {
		t.Errorf("what is answered is asked again: %+v", again)
	}
	one := in.askTree(t, treeOf("r1", "app", "other"))
	if one.IsTree() || one.Package.Name != "other" || one.Tree != "" {
		t.Errorf("a tree of one is %+v", one)
	}
}

func TestTreeLimits(t *testing.T) {
	in := install(t, approval.Limits{PerRun: 2, Releases: 3})
	tooMany := approval.TreeAsk{}
	for i := range approval.MaxMembers + 1 {
		tooMany.Members = append(tooMany.Members, leaf("r1", fmt.Sprintf("p%d", i), 0))
	}
	_, err := in.AskTree(t.Context(), tooMany)
	wantErr(t, err, fault.ErrForbidden, "501 releases are more than a person can be asked about at once (500)")
	weak := treeOf("r1", "app", "lib")
	weak.Members[1].Files[0].Digests = []string{"md5:0"}
	_, err = in.AskTree(t.Context(), weak)
	wantErr(t, err, fault.ErrForbidden, "no digest of python lib 1.0 is known that an approval could be bound to")
	_, err = in.AskTree(t.Context(), treeOf("r1", "a", "b", "c", "d", "e", "f", "g"))
	wantErr(t, err, fault.ErrForbidden, "the run r1 has 0 releases that wait for a person, and may have no more than 6; they must be answered first")
	if len(in.outcomes()) != 1 || in.outcomes()[0] != audit.Exceeded {
		t.Errorf("on record is %v", in.outcomes())
	}
	if _, err := in.AskTree(t.Context(), treeOf("r1", "a", "b", "c")); err != nil { // one request
		t.Fatal(err)
	}
	in.ask(t, leaf("r1", "x", 0).Ask) // the second
	_, err = in.AskTree(t.Context(), treeOf("r1", "y", "z"))
	wantErr(t, err, fault.ErrForbidden, "the run r1 has 2 requests that wait for a person, and may have no more; they must be answered first")
	files := treeOf("r2", "a", "b")
	for i := range files.Members {
		for n := range 450 {
			files.Members[i].Files = append(files.Members[i].Files, approval.File{Name: fmt.Sprintf("%d.whl", n), Digests: []string{digestOf(fmt.Sprintf("%d-%d", i, n)), "sha512:" + strings.Repeat("a", 120), "sha384:" + strings.Repeat("b", 96)}})
		}
	}
	if _, err := in.AskTree(t.Context(), files); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a tree of more files than a record can name: %v", err)
	}
}

// A large tree is on record in several parts, whole.
func TestTreeOfManyMembers(t *testing.T) {
	in := install(t, approval.Limits{})
	var names []string
	for i := range approval.MaxMembers {
		names = append(names, fmt.Sprintf("package-with-a-long-name-%d", i))
	}
	r := in.askTree(t, treeOf("r1", names...))
	in.restart(t)
	again, err := in.Get(t.Context(), r.ID)
	if err != nil || len(again.Members) != approval.MaxMembers {
		t.Fatalf("it has %d members, %v", len(again.Members), err)
	}
	in.approve(t, approval.ScopeRun, 0, r.ID)
	if !in.has(t, "r1", names[0]) || !in.has(t, "r1", names[approval.MaxMembers-1]) {
		t.Error("not all was admitted")
	}
}

// Of a batch that was cut short nothing counts.
func TestTreeIsFiledWholeOrNotAtAll(t *testing.T) {
	in := install(t, approval.Limits{})
	full := errors.New("no space")
	records := 0
	in.log.FailWhen(func(audit.Record) error {
		if records++; records > 2 {
			return full
		}
		return nil
	})
	if _, err := in.AskTree(t.Context(), treeOf("r1", "app", "lib", "tool")); !errors.Is(err, fault.ErrUnavailable) {
		t.Fatalf("it was filed: %v", err)
	}
	in.log.FailWhen(nil)
	in.restart(t)
	if page, _, err := in.List(t.Context(), approval.Filter{}); err != nil || len(page) != 0 {
		t.Errorf("%d requests are there, %v", len(page), err)
	}
}

func TestTreeThatAPersonLooksAtOutlivesItsRun(t *testing.T) {
	in := install(t, approval.Limits{PerToken: 2})
	in.FollowRuns(func() map[string]bool { return nil })
	first := in.askTree(t, treeOf("r1", "app", "lib"))
	second := in.askTree(t, treeOf("r2", "tool", "kit"))
	if _, err := in.Look(t.Context(), "bob", first.ID); err != nil {
		t.Fatal(err)
	}
	in.askTree(t, treeOf("r3", "x", "y")) // one must yield
	if in.state(t, first.ID) != approval.Pending || in.state(t, second.ID) != approval.Expired {
		t.Errorf("the first is %s, the second %s", in.state(t, first.ID), in.state(t, second.ID))
	}
	if in.state(t, second.Members[1].ID) != approval.Expired {
		t.Error("a member of a tree that made room waits on")
	}
}

// Answers to a tree and to its members at one time: one of them counts for each member,
// and the tree ends once.
func TestTreeAnswersRace(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.askTree(t, treeOf("r1", "app", "lib", "tool"))
	var all sync.WaitGroup
	for _, v := range []approval.Verdict{
		{IDs: []string{r.ID}, State: approval.Approved},
		{IDs: []string{r.ID}, State: approval.Denied},
		{IDs: []string{r.Members[0].ID}, State: approval.Denied},
		{IDs: []string{r.Members[2].ID}, State: approval.Approved},
	} {
		all.Go(func() { _, _ = in.Answer(t.Context(), "bob", v) })
	}
	all.Wait()
	ends := 0
	for _, rec := range in.log.All() {
		if rec.Approval == r.ID && rec.Outcome != audit.Pending && rec.Outcome != audit.Failed {
			ends++
		}
	}
	got, err := in.Get(t.Context(), r.ID)
	if err != nil || ends != 1 || got.State == approval.Pending {
		t.Fatalf("the tree ended %d times, and is %s, %v", ends, got.State, err)
	}
	for _, m := range got.Members {
		if in.has(t, "r1", m.Package.Name) != (m.State == approval.Approved) {
			t.Errorf("%s is %s, and the run has it: %t", m.Package.Name, m.State, in.has(t, "r1", m.Package.Name))
		}
	}
}

func TestTreeExpires(t *testing.T) {
	in := install(t, approval.Limits{})
	r := in.askTree(t, treeOf("r1", "app", "lib"))
	in.jump.Store(int64(8 * 24 * time.Hour))
	if s := in.state(t, r.ID); s != approval.Expired {
		t.Errorf("after a week it is %s", s)
	}
	_, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{r.ID}, State: approval.Approved})
	if !errors.Is(err, fault.ErrConflict) || in.has(t, "r1", "app") {
		t.Errorf("an answer after its time: %v", err)
	}
}
