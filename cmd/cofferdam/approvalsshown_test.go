package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// askShown is what a run asks for.
func askShown(name string, known evidence.Evidence) approval.Ask {
	return approval.Ask{
		Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}, Upstream: "https://index.example/simple/",
		Files: []approval.File{{Name: name + "-1.0-py3-none-any.whl", Kind: "wheel", Digests: []string{"sha256:" + (fmt.Sprintf("%x", name) + strings.Repeat("0", 64))[:64]}}},
		Run:   "r1", Sandbox: "sb1", Policy: "sha256:policy", User: "ann", Rule: "packages.default", Reason: "no list names it", Evidence: known,
	}
}

// textShown is what a person sees at a terminal before the question, and approveShown what `approvals approve` then sends.
func textShown(requests []approval.Request) string {
	f := answerFlags{state: approval.Approved}
	text := ""
	for _, r := range expanded(requests) {
		text += f.beforeAsking(r)
	}
	return text
}

func approveShown(t *testing.T, q *approval.Queue, requests []approval.Request) {
	t.Helper()
	v := approval.Verdict{State: approval.Approved, Digests: map[string][]string{}, Revisions: map[string]uint64{}}
	for _, r := range requests { // as answerFlags.sendAnswer
		v.IDs, v.Revisions[r.ID] = append(v.IDs, r.ID), r.Revision
		noteShownDigests(v.Digests, r)
	}
	if _, err := q.Answer(t.Context(), "bob", v); err != nil {
		t.Fatal(err)
	}
}

func newShownQueue(t *testing.T) *approval.Queue {
	t.Helper()
	q, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: &approvaltest.Log{}, Limits: approval.Limits{Burst: time.Nanosecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// TestAGroupsTreeIsShownWhole: an agent asks for a release, and later for an install that brings
// it. A person approves the group of the install: what is approved was shown. The control is the
// tree by its own id.
func TestAGroupsTreeIsShownWhole(t *testing.T) {
	for _, by := range []string{"tree", "group"} {
		t.Run(by, func(t *testing.T) {
			q := newShownQueue(t)
			evil, err := q.Ask(t.Context(), askShown("evil", evidence.Evidence{}))
			if err != nil {
				t.Fatal(err)
			}
			tree := approval.TreeAsk{Root: askShown("app", evidence.Evidence{}).Package}
			for i, name := range []string{"app", "nice", "evil"} {
				tree.Members = append(tree.Members, approval.TreeMember{Ask: askShown(name, evidence.Evidence{}), Depth: min(i, 1)})
			}
			asked, err := q.AskTree(t.Context(), tree)
			if err != nil || !asked.IsTree() || asked.Group == evil.Group {
				t.Fatal(asked, err)
			}
			requests := []approval.Request{asked}
			if by == "group" { // as addressed does
				if requests, _, err = q.List(t.Context(), approval.Filter{Group: asked.Group, States: []approval.State{approval.Pending}}); err != nil {
					t.Fatal(err)
				}
			}
			requests, err = withMembers(t.Context(), q.Get, requests)
			if err != nil {
				t.Fatal(err)
			}
			text := textShown(requests)
			approveShown(t, q, requests)
			now, err := q.Get(t.Context(), evil.ID)
			if err != nil {
				t.Fatal(err)
			}
			if now.State != approval.Approved || !strings.Contains(text, "evil") {
				t.Errorf("%s is %s, and this is all that was shown:\n%s", now.Package, now.State, text)
			}
		})
	}
}

// TestALargeTreeIsShownWhole: so much is known of a tree's first releases that the last comes
// without its request. All that is approved with the tree was shown all the same. The control is a small tree.
func TestALargeTreeIsShownWhole(t *testing.T) {
	for name, lines := range map[string]int{"small": 1, "large": 60} {
		t.Run(name, func(t *testing.T) {
			q := newShownQueue(t)
			known := evidence.Evidence{}
			for i := range lines { // a publisher's text
				line := fmt.Sprintf("%03d %s", i, strings.Repeat("d", 280))
				known.Requires, known.Changes, known.NewFiles = append(known.Requires, line), append(known.Changes, line), append(known.NewFiles, line)
			}
			tree := approval.TreeAsk{Root: askShown("app", known).Package}
			for i := range 120 {
				tree.Members = append(tree.Members, approval.TreeMember{Ask: askShown(fmt.Sprintf("pkg%d", i), known), Depth: 1})
			}
			tree.Members = append(tree.Members, approval.TreeMember{Ask: askShown("evil", evidence.Evidence{}), Depth: 1})
			asked, err := q.AskTree(t.Context(), tree)
			if err != nil {
				t.Fatal(err)
			}
			requests, err := withMembers(t.Context(), q.Get, []approval.Request{asked})
			if err != nil {
				t.Fatal(err)
			}
			text, meaning := textShown(requests), treeMeaning(requests[0], approval.ScopeRun, 0)
			approveShown(t, q, requests)
			now, err := q.Get(t.Context(), asked.Members[len(asked.Members)-1].ID)
			if err != nil {
				t.Fatal(err)
			}
			if now.State != approval.Approved || (!strings.Contains(text, now.Package.Name) || !strings.Contains(meaning, "121 releases")) {
				t.Errorf("%s was approved, and is not among what was shown; the sentence is: %s", now.Package, meaning)
			}
		})
	}
}

// TestAMemberThatWasNotShownKeepsATreeOut: a client that says what was shown of some releases of a
// tree lets none in that it does not name. The control names all.
func TestAMemberThatWasNotShownKeepsATreeOut(t *testing.T) {
	for name, all := range map[string]bool{"some": false, "all": true} {
		t.Run(name, func(t *testing.T) {
			q := newShownQueue(t)
			tree := approval.TreeAsk{Root: askShown("app", evidence.Evidence{}).Package}
			for _, name := range []string{"app", "evil"} {
				tree.Members = append(tree.Members, approval.TreeMember{Ask: askShown(name, evidence.Evidence{})})
			}
			asked, err := q.AskTree(t.Context(), tree)
			if err != nil {
				t.Fatal(err)
			}
			v := approval.Verdict{IDs: []string{asked.AnswerID}, State: approval.Approved, Digests: map[string][]string{}}
			for _, m := range asked.Members {
				if all || m.Package.Name != "evil" {
					v.Digests[m.ID] = m.Digests
				}
			}
			if _, err := q.Answer(t.Context(), "bob", v); (err == nil) != all {
				t.Errorf("%v", err)
			}
		})
	}
}
