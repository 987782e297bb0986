package approval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// living are the runs that live, as a test has it.
type living struct {
	mu   sync.Mutex
	runs map[string]bool
}

func (l *living) set(runs ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = map[string]bool{}
	for _, r := range runs {
		l.runs[r] = true
	}
}

func (l *living) now() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs
}

// askFor asks for a package of a name, for a run of a token.
func (in *installation) askFor(token, run, name string) (approval.Request, error) {
	a := named(name)
	a.Run, a.Token = run, token
	return in.Ask(context.Background(), a)
}

func (in *installation) mustAskFor(t *testing.T, token, run, name string) approval.Request {
	t.Helper()
	r, err := in.askFor(token, run, name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// flood has a token ask until it is refused, with runs that live, and says how often
// it was not.
func (in *installation) flood(t *testing.T, token string) (taken int) {
	t.Helper()
	for taken = 0; taken < 1_000; taken++ {
		if _, err := in.askFor(token, token+"-run", fmt.Sprintf("p%s%d", strings.TrimPrefix(token, "tok-"), taken)); err != nil {
			if !errors.Is(err, fault.ErrForbidden) {
				t.Fatal(err)
			}
			return taken
		}
	}
	t.Fatalf("%q fills the queue without end", token)
	return taken
}

// TestShares: no token fills the queue, alone or with others, however many runs it
// has; and the host's own runs are one of them.
func TestShares(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{PerRun: 1000, Pending: 40, PerToken: 10, Sure: 2})
	for i, token := range []string{"tok-a", "tok-b", "", "tok-d", "tok-e", "tok-f", "tok-g"} {
		want := 10
		if i > 2 {
			want = 2
		}
		if n := in.flood(t, token); n != want {
			t.Errorf("the %dth, %q, got %d requests, want %d", i, token, n, want)
		}
	}
	if n := in.flood(t, "tok-h"); n != 2 {
		t.Errorf("one who comes late got %d requests", n)
	}
	in.restart(t)
	if _, err := in.askFor("tok-a", "another", "more"); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("after a restart a token's share is not known: %v", err)
	}
}

// TestForsakenRequestsYield: what nobody waits for any more, and nobody has looked at,
// stands in nobody's way: the oldest of the token that has the most ends first, on
// record.
func TestForsakenRequestsYield(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{PerRun: 1000, Pending: 6, PerToken: 4, Sure: 4})
	var runs living
	runs.set("a1", "b1")
	in.FollowRuns(runs.now)
	seen := in.mustAskFor(t, "tok-a", "a1", "seen")
	first := in.mustAskFor(t, "tok-a", "a1", "first")
	second := in.mustAskFor(t, "tok-a", "a1", "second")
	shared := in.mustAskFor(t, "tok-a", "a1", "shared")
	in.mustAskFor(t, "tok-a", "b1", "shared") // another run of the token waits for it, too
	if _, err := in.Look(t.Context(), "carol", seen.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := in.askFor("tok-a", "a1", "more"); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("the share is not full, or what a run waits for yields: %v", err)
	}
	runs.set("a2", "b1")
	in.mustAskFor(t, "tok-a", "a2", "more")
	if in.state(t, first.ID) != approval.Expired || in.state(t, second.ID) != approval.Pending {
		t.Error("the oldest that nobody waits for did not yield")
	}
	if r, err := in.Get(t.Context(), first.ID); err != nil || r.Ended != "its run has ended, nobody had looked at it, and another request needed the room" {
		t.Error(r.Ended, err)
	}
	in.restart(t)
	in.FollowRuns(runs.now)
	in.mustAskFor(t, "tok-a", "a2", "yet-more")
	for _, id := range []string{seen.ID, shared.ID} {
		if in.state(t, id) != approval.Pending {
			t.Errorf("%s yielded", id)
		}
	}
	if _, err := in.askFor("tok-a", "a2", "too-much"); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("what was looked at, or is waited for, yields: %v", err)
	}
	in.mustAskFor(t, "tok-b", "b1", "b-1")
	in.mustAskFor(t, "tok-b", "b1", "b-2")
	if _, err := in.askFor("tok-c", "c1", "c"); !errors.Is(err, fault.ErrForbidden) {
		t.Error("the queue is not full")
	}
	runs.set("c1", "b1")
	in.mustAskFor(t, "tok-c", "c1", "c")
}

// TestRequestsEndAfterTheirRuns, unless a person has looked at them or filed them.
func TestRequestsEndAfterTheirRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		var runs living
		runs.set("r1", "r2")
		in.FollowRuns(runs.now)
		plain := in.mustAskFor(t, "tok-a", "r1", "plain")
		looked := in.mustAskFor(t, "tok-a", "r1", "looked")
		shared := in.mustAskFor(t, "tok-a", "r1", "shared")
		in.mustAskFor(t, "tok-a", "r2", "shared")
		a := named("filed")
		a.Run, a.ByPerson = "r1", true
		filed := in.ask(t, a)
		for range 2 { // the second look is no news
			if r, err := in.Look(t.Context(), "carol", looked.ID); err != nil || r.Seen == nil || r.Seen.By != "carol" {
				t.Fatal(r.Seen, err)
			}
		}
		for e, err := range in.Watch(t.Context(), 0) {
			if err != nil || e.Name != approval.EventAsked && e.Name != approval.EventJoined {
				t.Error(e.Name, err)
			}
			if e.ID == filed.ID {
				break
			}
		}
		time.Sleep(3 * 24 * time.Hour) // its runs live
		synctest.Wait()
		if s := in.state(t, plain.ID); s != approval.Pending {
			t.Errorf("while its run lives it is %s", s)
		}
		runs.set("r2")
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if s := in.state(t, plain.ID); s != approval.Pending {
			t.Errorf("not a day after its run it is %s", s)
		}
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		for id, want := range map[string]approval.State{
			plain.ID: approval.Expired, looked.ID: approval.Pending, shared.ID: approval.Pending, filed.ID: approval.Pending,
		} {
			if got := in.state(t, id); got != want {
				t.Errorf("%s is %s, want %s", id, got, want)
			}
		}
		looks := 0
		for _, r := range in.log.All() {
			if r.Kind == audit.KindApproval && r.Detail["event"] == "seen" {
				looks++
			}
		}
		if looks != 1 {
			t.Errorf("%d looks are on record", looks)
		}
		if again := in.mustAskFor(t, "tok-b", "r2", "plain"); again.ID == plain.ID || again.State != approval.Pending {
			t.Errorf("asked again it is %s", again.State)
		}
	})
}

// TestARunIDIsTheOwnersOwn: another token's runs of the same id take no part of what a run may
// ask, nor of its group, and what is told of them is told of each.
func TestARunIDIsTheOwnersOwn(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{PerRun: 2})
	first := in.mustAskFor(t, "tok-b", "ci", "b1")
	in.mustAskFor(t, "tok-b", "ci", "b2")
	if _, err := in.askFor("tok-b", "ci", "b3"); !errors.Is(err, fault.ErrForbidden) { // the control
		t.Errorf("a third of one run: %v", err)
	}
	own := in.mustAskFor(t, "", "ci", "a1")
	if own.Group == first.Group {
		t.Errorf("two owners' requests are one group, %s", own.Group)
	}
	if more := in.mustAskFor(t, "", "ci", "a2"); more.Group != own.Group {
		t.Errorf("%s after %s", more.Group, own.Group)
	}
	if _, err := in.askFor("", "ci", "a3"); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("a third of the other run: %v", err)
	}
	capped := 0
	for r, err := range in.log.Records(t.Context(), audit.Filter{Kinds: []audit.Kind{audit.KindApproval}}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Detail["event"] == "capped" {
			capped++
		}
	}
	if capped != 2 {
		t.Errorf("%d runs are on record for asking too much", capped)
	}
}

// TestRunsEnded: readers are told when nobody waits any more, whatever they may see of the runs
// themselves, and not while one of those that asked lives.
func TestRunsEnded(t *testing.T) {
	t.Parallel()
	in := install(t, approval.Limits{})
	var runs living
	runs.set("a1", "a2")
	in.FollowRuns(runs.now)
	r := in.mustAskFor(t, "tok-a", "a1", "shared")
	in.mustAskFor(t, "tok-a", "a2", "shared")
	for _, test := range []struct {
		lives []string
		want  bool
	}{{[]string{"a1", "a2"}, false}, {[]string{"a2"}, false}, {nil, true}, {[]string{"a1"}, false}} {
		runs.set(test.lives...)
		got, err := in.Get(t.Context(), r.ID)
		page, _, listErr := in.List(t.Context(), approval.Filter{})
		if err != nil || listErr != nil || len(page) != 1 || got.RunsEnded != test.want || page[0].RunsEnded != test.want {
			t.Errorf("%v live: %v, %v; %v, %v", test.lives, got.RunsEnded, err, page, listErr)
		}
	}
}
