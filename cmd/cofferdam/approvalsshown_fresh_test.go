package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// freshAsk is what a run asks for.
func freshAsk(name string, known evidence.Evidence) approval.Ask {
	return approval.Ask{
		Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}, Upstream: "https://index.example/simple/",
		Files: []approval.File{{Name: name + "-1.0-py3-none-any.whl", Kind: "wheel", Digests: []string{"sha256:" + (fmt.Sprintf("%x", name) + strings.Repeat("0", 64))[:64]}}},
		Run:   "r1", Sandbox: "sb1", Policy: "sha256:policy", User: "ann", Rule: "packages.default", Reason: "no list names it", Evidence: known,
	}
}

// freshShown is what a person sees at a terminal before the question, and freshYes what `approvals approve` then sends.
func freshShown(requests []approval.Request) string {
	f := answerFlags{state: approval.Approved}
	text := ""
	for _, r := range expanded(requests) {
		text += f.beforeAsking(r)
	}
	return text
}

func freshYes(t *testing.T, q *approval.Queue, requests []approval.Request) {
	t.Helper()
	v := approval.Verdict{State: approval.Approved, Digests: map[string][]string{}, Revisions: map[string]uint64{}}
	for _, r := range requests { // as answerFlags.answer
		v.IDs, v.Revisions[r.ID] = append(v.IDs, r.ID), r.Revision
		shown(v.Digests, r)
	}
	if _, err := q.Answer(t.Context(), "bob", v); err != nil {
		t.Fatal(err)
	}
}

func freshQueue(t *testing.T) *approval.Queue {
	t.Helper()
	q, err := approval.Open(t.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: &approvaltest.Log{}, Limits: approval.Limits{Burst: time.Nanosecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

// TestFreshAGroupsTreeIsShownWhole: an agent asks for a release, and later for an install that brings
// it. A person approves the group of the install: what is approved was shown. The control is the
// tree by its own id.
func TestFreshAGroupsTreeIsShownWhole(t *testing.T) {
	for _, by := range []string{"tree", "group"} {
		t.Run(by, func(t *testing.T) {
			q := freshQueue(t)
			evil, err := q.Ask(t.Context(), freshAsk("evil", evidence.Evidence{}))
			if err != nil {
				t.Fatal(err)
			}
			tree := approval.TreeAsk{Root: freshAsk("app", evidence.Evidence{}).Package}
			for i, name := range []string{"app", "nice", "evil"} {
				tree.Members = append(tree.Members, approval.TreeMember{Ask: freshAsk(name, evidence.Evidence{}), Depth: min(i, 1)})
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
			text := freshShown(requests)
			freshYes(t, q, requests)
			now, err := q.Get(t.Context(), evil.ID)
			if err != nil {
				t.Fatal(err)
			}
			if now.State == approval.Approved && !strings.Contains(text, "evil") {
				t.Errorf("%s was approved, and this is all that was shown:\n%s", now.Package, text)
			}
		})
	}
}

// TestFreshALargeTreeIsShownWhole: so much is known of a tree's first releases that the last comes
// without its request. What is approved with the tree was shown all the same. The control is a small tree.
func TestFreshALargeTreeIsShownWhole(t *testing.T) {
	for name, lines := range map[string]int{"small": 1, "large": 60} {
		t.Run(name, func(t *testing.T) {
			q := freshQueue(t)
			known := evidence.Evidence{}
			for i := range lines { // a publisher's text
				line := fmt.Sprintf("%03d %s", i, strings.Repeat("d", 280))
				known.Requires, known.Changes, known.NewFiles = append(known.Requires, line), append(known.Changes, line), append(known.NewFiles, line)
			}
			tree := approval.TreeAsk{Root: freshAsk("app", known).Package}
			for i := range 120 {
				tree.Members = append(tree.Members, approval.TreeMember{Ask: freshAsk(fmt.Sprintf("pkg%d", i), known), Depth: 1})
			}
			tree.Members = append(tree.Members, approval.TreeMember{Ask: freshAsk("evil", evidence.Evidence{}), Depth: 1})
			asked, err := q.AskTree(t.Context(), tree)
			if err != nil {
				t.Fatal(err)
			}
			text, meaning := freshShown([]approval.Request{asked}), treeMeaning(asked, approval.ScopeRun, 0)
			freshYes(t, q, []approval.Request{asked})
			now, err := q.Get(t.Context(), asked.Members[len(asked.Members)-1].ID)
			if err != nil {
				t.Fatal(err)
			}
			if now.State == approval.Approved && (!strings.Contains(text, now.Package.Name) || !strings.Contains(meaning, "121 releases")) {
				t.Errorf("%s was approved, and is not among what was shown; the sentence is: %s", now.Package, meaning)
			}
		})
	}
}
