// Package journaltest is the suite that every journal.Journal must pass.
package journaltest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Factory makes an empty journal, and what closes and opens it again as the next
// daemon does; nil for one that ends with its process.
type Factory func(t *testing.T) (j journal.Journal, reopen func() journal.Journal)

// TestJournal runs the contract.
func TestJournal(t *testing.T, factory Factory) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, j journal.Journal, reopen func() journal.Journal){
		"life": testLife, "whole": testWhole, "put": testPut, "events": testEvents, "at once": testAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, reopen := factory(t)
			test(t, j, reopen)
		})
	}
}

func moveState(t *testing.T, j journal.Journal, id string, from, to journal.State) journal.Event {
	t.Helper()
	ev, err := j.Move(t.Context(), journal.Entry{Info: journal.Info{ID: id, Run: "run-1"}, State: to},
		journal.Event{Time: time.Now().UTC(), Sandbox: id, Run: "run-1", From: from, To: to})
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

func states(t *testing.T, j journal.Journal) map[string]journal.State {
	t.Helper()
	entries, err := j.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]journal.State{}
	for _, e := range entries {
		found[e.Info.ID] = e.State
	}
	return found
}

func testLife(t *testing.T, j journal.Journal, reopen func() journal.Journal) {
	t.Helper()
	if last, err := j.Last(t.Context()); last != 0 || err != nil {
		t.Error(last, err)
	}
	for i, step := range []struct {
		id       string
		from, to journal.State
	}{
		{"sb1", "", journal.Creating},
		{"sb2", "", journal.Creating},
		{"sb1", journal.Creating, journal.Running},
		{"sb2", journal.Creating, journal.Failed},
		{"sb2", journal.Failed, journal.Destroyed},
	} {
		if ev := moveState(t, j, step.id, step.from, step.to); ev.Seq != int64(i+1) {
			t.Errorf("event %d has the number %d", i+1, ev.Seq)
		}
	}
	want := map[string]journal.State{"sb1": journal.Running}
	if diff := cmp.Diff(want, states(t, j)); diff != "" {
		t.Error(diff)
	}
	if reopen == nil {
		return
	}
	j = reopen()
	if diff := cmp.Diff(want, states(t, j)); diff != "" {
		t.Errorf("opened again: %s", diff)
	}
	if last, err := j.Last(t.Context()); last != 5 || err != nil {
		t.Error(last, err)
	}
	if ev := moveState(t, j, "sb1", journal.Running, journal.Destroying); ev.Seq != 6 {
		t.Errorf("the numbers begin anew, at %d", ev.Seq)
	}
}

// testWhole: all of an entry and of an event comes back.
func testWhole(t *testing.T, j journal.Journal, reopen func() journal.Journal) {
	t.Helper()
	at := time.Date(2026, 11, 22, 3, 4, 5, 678, time.UTC)
	e := journal.Entry{
		Info: journal.Info{
			ID: "sb1", Run: "run-1", Task: "täglich \"x\"\n", Template: "debian", Digest: "sha256:1", Engine: "e", PolicyDigest: "sha256:2", LockDigest: "sha256:3",
			Lifetime: journal.Lifetime{TTL: time.Minute, Then: journal.ThenPause}, Owner: journal.Owner{Token: "tok-1"}, Account: journal.Account{Name: "user", Home: "/home/user"},
			Limits: engine.Limits{CPU: 1.5, MemoryBytes: 1 << 30}, Labels: map[string]string{"a": "b", "": "\x00"}, Created: at, Handle: engine.Handle{Engine: "e", ID: "sb1", State: []byte(`{"a":1}`)},
		},
		State: journal.Paused, Key: "k", Request: "sha256:4", First: 1 << 40,
		Clock:  journal.Clock{Lifetime: journal.Lifetime{Idle: time.Hour}, Left: 1, Still: true, Active: 3, Boot: "b", At: 2},
		Guards: map[string]time.Duration{"cmd-1": 4},
	}
	ev := journal.Event{Time: at, Sandbox: "sb1", Run: "run-1", Token: "tok-1", From: journal.Freezing, To: journal.Paused, Reason: "because\n"}
	got, err := j.Move(t.Context(), e, ev)
	if err != nil {
		t.Fatal(err)
	}
	if ev.Seq = 1; got != ev {
		t.Errorf("%+v", got)
	}
	if reopen != nil {
		j = reopen()
	}
	entries, err := j.Entries(t.Context())
	if diff := cmp.Diff([]journal.Entry{e}, entries); diff != "" || err != nil {
		t.Error(diff, err)
	}
	events, err := j.Events(t.Context(), 0, 10)
	if diff := cmp.Diff([]journal.Event{ev}, events); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func testPut(t *testing.T, j journal.Journal, _ func() journal.Journal) {
	t.Helper()
	moveState(t, j, "sb1", "", journal.Creating)
	for _, id := range []string{"sb1", "sb2"} {
		if err := j.Put(t.Context(), journal.Entry{Info: journal.Info{ID: id}, State: journal.Running, First: 7}); err != nil {
			t.Error(err)
		}
	}
	entries, err := j.Entries(t.Context())
	if err != nil || len(entries) != 1 || entries[0].First != 7 {
		t.Errorf("%+v, %v", entries, err)
	}
	if last, err := j.Last(t.Context()); last != 1 || err != nil {
		t.Errorf("a Put made an event: %d, %v", last, err)
	}
}

func testEvents(t *testing.T, j journal.Journal, _ func() journal.Journal) {
	t.Helper()
	for i := range 10 {
		moveState(t, j, fmt.Sprint("sb", i), "", journal.Creating)
	}
	for _, c := range []struct {
		after int64
		limit int
		want  []int64
	}{{0, 3, []int64{1, 2, 3}}, {8, 100, []int64{9, 10}}, {10, 5, nil}, {99, 5, nil}, {-5, 1, []int64{1}}, {3, 0, nil}} {
		events, err := j.Events(t.Context(), c.after, c.limit)
		var got []int64
		for _, e := range events {
			got = append(got, e.Seq)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("after %d, at most %d: %v, %v", c.after, c.limit, got, err)
		}
	}
}

// testAtOnce: no number is given twice and none is left out.
func testAtOnce(t *testing.T, j journal.Journal, _ func() journal.Journal) {
	t.Helper()
	const writers, each = 8, 20
	var group sync.WaitGroup
	seqs := make(chan int64, writers*each)
	for w := range writers {
		group.Go(func() {
			for i := range each {
				id := fmt.Sprintf("sb%d-%d", w, i)
				ev, err := j.Move(context.Background(), journal.Entry{Info: journal.Info{ID: id}}, journal.Event{Sandbox: id, To: journal.Creating})
				if err != nil {
					t.Error(err)
				}
				seqs <- ev.Seq
			}
		})
	}
	group.Wait()
	close(seqs)
	seen := map[int64]bool{}
	for seq := range seqs {
		if seen[seq] || seq < 1 || seq > writers*each {
			t.Errorf("the number %d", seq)
		}
		seen[seq] = true
	}
	if got := states(t, j); len(got) != writers*each {
		t.Errorf("%d entries", len(got))
	}
}
