package approval_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestExpiry: nobody answers for a week; an approval's time is over. Both are
// true by the clock, and on record.
func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		nobody := in.ask(t, ask("r1", wheel("sha256:aa")))
		time.Sleep(7*24*time.Hour - 1)
		if s := in.state(t, nobody.ID); s != approval.Pending {
			t.Errorf("too early: %s", s)
		}
		time.Sleep(time.Nanosecond)
		if s := in.state(t, nobody.ID); s != approval.Expired {
			t.Errorf("by the clock it is %s", s)
		}
		_, err := in.Answer(t.Context(), "bob", approval.Verdict{IDs: []string{nobody.ID}, State: approval.Approved})
		wantErr(t, err, fault.ErrConflict, nobody.ID+" has expired: nobody answered in time; it is asked again when a run wants it")
		synctest.Wait()
		again := in.ask(t, ask("r1", wheel("sha256:aa")))
		in.approve(t, approval.ScopeRun, time.Hour, again.ID)
		time.Sleep(time.Hour)
		if in.admits(t, "r1", "sha256:aa") {
			t.Error("an approval holds past its time")
		}
		synctest.Wait()
		want := []audit.Outcome{audit.Pending, audit.Failed, audit.Expired, audit.Pending, audit.Approved, audit.Expired}
		got := in.outcomes()
		if got[1] == audit.Expired { // whoever was first at that instant
			got[1], got[2] = got[2], got[1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if third := in.ask(t, ask("r1", wheel("sha256:aa"))); third.ID == again.ID {
			t.Error("what has ended is not asked again")
		}
	})
}

// TestExpiryUnrecorded: the clock rules though the log is full; the record comes
// when there is room, also after a restart.
func TestExpiryUnrecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		r := in.ask(t, ask("r1", wheel("sha256:aa")))
		in.approve(t, approval.ScopeRun, time.Hour, r.ID)
		in.log.FailWhen(func(audit.Record) error { return errors.New("no space left") })
		time.Sleep(2 * time.Hour)
		if in.admits(t, "r1", "sha256:aa") || in.state(t, r.ID) != approval.Expired {
			t.Error("an approval holds past its time")
		}
		if n := len(in.log.All()); n != 2 {
			t.Errorf("%d records", n)
		}
		in.log.FailWhen(nil)
		in.restart(t)
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]audit.Outcome{audit.Pending, audit.Approved, audit.Expired}, in.outcomes()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWhatExpiredStaysExpired: an approval that is over by the host's clock is over for good, on
// record, also when that goes back. Requests that come meanwhile can be answered, and their answers
// last no longer than was said.
func TestWhatExpiredStaysExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		day := 24 * time.Hour
		in := install(t, approval.Limits{})
		r := in.ask(t, ask("r1", wheel("sha256:aa")))
		in.approve(t, approval.ScopeRun, day, r.ID)
		synctest.Wait() // nothing else is to be looked at
		in.jump.Store(int64(30 * day))
		if in.admits(t, "r1", "sha256:aa") {
			t.Error("it admits after its end by the host's clock")
		}
		synctest.Wait()
		in.jump.Store(0)
		if in.admits(t, "r1", "sha256:aa") || in.state(t, r.ID) != approval.Expired {
			t.Error("it admits again")
		}
		if diff := cmp.Diff([]audit.Outcome{audit.Pending, audit.Approved, audit.Expired}, in.outcomes()); diff != "" {
			t.Error(diff)
		}
		in.jump.Store(int64(30 * day))
		held := in.ask(t, named("other"))
		if held.State != approval.Pending {
			t.Fatalf("what is asked during a jump is %s", held.State)
		}
		verdict := approval.Verdict{IDs: []string{held.ID}, State: approval.Approved, Lasts: day}
		if _, err := in.Answer(t.Context(), "bob", verdict); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("an answer that is over at once was taken: %v", err)
		}
		verdict.Lasts = 40 * day
		answered, err := in.Answer(t.Context(), "bob", verdict)
		if err != nil {
			t.Fatal(err)
		}
		if ends := answered[0].Answer.Expires; !ends.Equal(time.Now().Add(40 * day)) {
			t.Errorf("it ends at %v", ends)
		}
	})
}

// TestAwait: woken by an answer, by the clock, and by its context.
func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		r := in.ask(t, ask("r1", wheel("sha256:aa")))
		got := make(chan approval.Request, 3)
		for range 3 {
			go func() {
				r, err := in.Await(context.Background(), r.ID)
				if err != nil {
					t.Error(err)
				}
				got <- r
			}()
		}
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("it returned while the request waits")
		}
		in.ask(t, ask("r2", sdist("sha256:bb"))) // a change that is no answer
		synctest.Wait()
		if len(got) != 0 {
			t.Fatal("it returned while the request waits")
		}
		in.approve(t, approval.ScopeRun, 0, r.ID)
		for range 3 {
			if r := <-got; r.State != approval.Approved {
				t.Error(r.State)
			}
		}
		if r, err := in.Await(t.Context(), r.ID); err != nil || r.State != approval.Approved {
			t.Error(r.State, err)
		}
		r = in.ask(t, named("other"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := in.Await(ctx, r.ID); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if r, err := in.Await(t.Context(), r.ID); err != nil || r.State != approval.Expired {
			t.Error(r.State, err)
		}
		if _, err := in.Await(t.Context(), "ap-nobody"); !errors.Is(err, fault.ErrNotFound) {
			t.Error(err)
		}
	})
}

// TestWatch: numbered events, from where one stood, over a restart.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		r := in.ask(t, ask("r1", wheel("sha256:aa")))
		in.ask(t, ask("r2", wheel("sha256:aa")))
		var got []approval.EventName
		var last uint64
		for e, err := range in.Watch(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			got, last = append(got, e.Name), e.Number
			if len(got) == 2 {
				break
			}
		}
		in.restart(t)
		if in.LastEvent() != last {
			t.Errorf("the last event is %d, not %d", in.LastEvent(), last)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range in.Watch(ctx, last) {
				if err != nil || e.Request.ID != r.ID {
					t.Error(e, err)
				}
				got = append(got, e.Name)
			}
		}()
		synctest.Wait()
		in.approve(t, approval.ScopeRun, 0, r.ID)
		if _, err := in.Revoke(t.Context(), "bob", r.ID, ""); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		<-done
		if diff := cmp.Diff([]approval.EventName{"asked", "joined", "approved", "revoked"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestBursts: what one run asks for within two minutes of each other is one
// group; what comes later is another.
func TestBursts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := install(t, approval.Limits{})
		first := in.ask(t, named("a")).Group
		time.Sleep(2 * time.Minute)
		if g := in.ask(t, named("b")).Group; g != first {
			t.Error("two minutes are another burst")
		}
		in.restart(t)
		time.Sleep(2 * time.Minute)
		if g := in.ask(t, named("c")).Group; g != first {
			t.Error("a restart is another burst")
		}
		time.Sleep(2*time.Minute + 1)
		if g := in.ask(t, named("d")).Group; g == first {
			t.Error("what comes later is the same burst")
		}
		a := named("e")
		a.Group = "apg-mine"
		if g := in.ask(t, a).Group; g != "apg-mine" {
			t.Error(g)
		}
	})
}
