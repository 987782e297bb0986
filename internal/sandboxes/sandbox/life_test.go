package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// gone waits until a sandbox has been taken away.
func gone(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	select {
	case <-s.Gone():
	case <-time.After(longestWait):
		t.Fatalf("%s lives on", s.Info().ID)
	}
}

func category(t *testing.T, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v is not %v", err, want)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// TestWay: a life as the journal and the log tell it.
func TestWay(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{})
	id := s.Info().ID
	if err := d.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, sandbox.Paused)
	category(t, d.Pause(t.Context(), id), fault.ErrConflict, "paused already")
	_, err := d.Start(t.Context(), id, sandbox.Command{Argv: []string{"/bin/true"}})
	category(t, err, fault.ErrConflict, "paused")
	if was, err := d.Resume(t.Context(), id); !was || err != nil {
		t.Fatal(was, err)
	}
	if was, err := d.Resume(t.Context(), id); was || err != nil {
		t.Error("resumed what runs:", was, err)
	}
	if err := d.Destroy(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	category(t, d.Pause(t.Context(), id), fault.ErrNotFound)
	d.wantEvents(t, id, sandbox.Creating, sandbox.Running, sandbox.Freezing, sandbox.Paused, sandbox.Thawing, sandbox.Running, sandbox.Destroying, sandbox.Destroyed)
	if got, want := d.records(t, id), []audit.Outcome{audit.Started, audit.Paused, audit.Resumed, audit.Finished}; !slices.Equal(got, want) {
		t.Errorf("on record are %v, want %v", got, want)
	}
	d.nothingLeft(t)
}

// TestTimeOver: each end, once; those that are extended live on.
func TestTimeOver(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	ttl := d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{TTL: time.Hour}})
	idle := d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{Idle: time.Hour}})
	pause := d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{TTL: time.Hour, Then: sandbox.ThenPause}})
	busy := d.create(t, sandbox.Request{})
	never := d.create(t, sandbox.Request{})
	if !never.Ends().IsZero() || time.Until(ttl.Ends()) > time.Hour || time.Until(idle.Ends()) < 50*time.Minute {
		t.Errorf("they end at %s, %s and %s", never.Ends(), ttl.Ends(), idle.Ends())
	}
	if _, err := d.Start(t.Context(), busy.Info().ID, sandbox.Command{Argv: []string{"/bin/sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	const soon = 50 * time.Millisecond
	for s, l := range map[*sandbox.Sandbox]sandbox.Lifetime{
		ttl: {TTL: soon}, idle: {Idle: soon}, pause: {TTL: soon, Then: sandbox.ThenPause}, busy: {Idle: soon},
	} {
		if err := d.SetLifetime(t.Context(), s.Info().ID, l); err != nil {
			t.Fatal(err)
		}
	}
	gone(t, ttl)
	gone(t, idle)
	await(t, "the one is paused", func() bool { state, _ := pause.State(); return state == sandbox.Paused })
	d.wantEvents(t, ttl.Info().ID, sandbox.Creating, sandbox.Running, sandbox.Destroying, sandbox.Destroyed)
	wantState(t, busy, sandbox.Running)
	wantState(t, never, sandbox.Running)
	category(t, d.SetLifetime(t.Context(), ttl.Info().ID, sandbox.Lifetime{TTL: time.Hour}), fault.ErrNotFound)
	// It goes on with its whole time when it is resumed, and is paused again.
	if _, err := d.Resume(t.Context(), pause.Info().ID); err != nil {
		t.Fatal(err)
	}
	await(t, "it is paused again", func() bool { state, _ := pause.State(); return state == sandbox.Paused })
	// Its time was over, and it is given another one as soon as anybody can see it paused.
	for range 20 {
		if err := d.SetLifetime(t.Context(), pause.Info().ID, sandbox.Lifetime{TTL: time.Hour, Then: sandbox.ThenPause}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Resume(t.Context(), pause.Info().ID); err != nil {
			t.Fatal(err)
		}
		wantState(t, pause, sandbox.Running)
		if err := d.SetLifetime(t.Context(), pause.Info().ID, sandbox.Lifetime{TTL: time.Millisecond, Then: sandbox.ThenPause}); err != nil {
			t.Fatal(err)
		}
		await(t, "it is paused", func() bool { state, _ := pause.State(); return state == sandbox.Paused })
	}
}

// TestResumeOfOneThatCantBeChecked: as long as it can't be read what a paused sandbox was made with, nobody knows whether it
// shows the same paths; it stays paused, and goes on once that can be read.
func TestResumeOfOneThatCantBeChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.daemon(t)
	s := d.create(t, sandbox.Request{})
	id := s.Info().ID
	if err := d.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(w.path("baselines"), "made-"+id+"-1.json")
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, text[:len(text)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = d.Resume(t.Context(), id)
	category(t, err, fault.ErrUnavailable, id, "can't be read")
	wantState(t, s, sandbox.Paused)
	if err := os.WriteFile(kept, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	wantState(t, s, sandbox.Running)
}

// TestAPauseAndAnEndAtOnce: a client that pauses a sandbox in the moment in which its
// own time pauses it does not lose it.
func TestAPauseAndAnEndAtOnce(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{TTL: time.Hour, Then: sandbox.ThenPause}})
	for range 20 {
		if err := d.SetLifetime(t.Context(), s.Info().ID, sandbox.Lifetime{TTL: time.Millisecond, Then: sandbox.ThenPause}); err != nil {
			t.Fatal(err)
		}
		if err := d.Pause(t.Context(), s.Info().ID); err != nil && !errors.Is(err, fault.ErrConflict) {
			t.Fatal(err)
		}
		if err := d.SetLifetime(t.Context(), s.Info().ID, sandbox.Lifetime{TTL: time.Hour, Then: sandbox.ThenPause}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Resume(t.Context(), s.Info().ID); err != nil {
			t.Fatal(err)
		}
		wantState(t, s, sandbox.Running)
	}
}

// TestManyEndAtOnce: many times are over in one moment (C-LI-05).
func TestManyEndAtOnce(t *testing.T) {
	t.Parallel()
	many := 200
	if testing.Short() {
		many = 12
	}
	d := newWorld(t).daemon(t)
	all := make([]*sandbox.Sandbox, many)
	for i := range all {
		all[i] = d.create(t, sandbox.Request{Lifetime: sandbox.Lifetime{TTL: time.Hour}})
	}
	for _, s := range all {
		if err := d.SetLifetime(t.Context(), s.Info().ID, sandbox.Lifetime{TTL: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range all {
		_ = d.SetLifetime(t.Context(), s.Info().ID, sandbox.Lifetime{TTL: time.Millisecond}) // too late, or in time
	}
	began := time.Now()
	for _, s := range all {
		gone(t, s)
	}
	t.Logf("%d ends took %s", many, time.Since(began))
	d.nothingLeft(t)
	d.wantOneEnd(t)
}

// TestStorm: many creates and destroys at once, some given up midway (C-LI-08).
func TestStorm(t *testing.T) {
	t.Parallel()
	at, rounds := 50, 4
	if testing.Short() {
		at, rounds = 12, 1
	}
	d := newWorld(t).daemon(t)
	for range rounds {
		var group sync.WaitGroup
		for i := range at {
			group.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%5 == 0 {
					time.AfterFunc(time.Duration(i)*4*time.Millisecond, cancel)
				}
				s, err := d.Create(ctx, ask(t, sandbox.Request{}))
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				if err := d.Destroy(t.Context(), s.Info().ID); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		d.nothingLeft(t)
	}
	d.wantOneEnd(t)
}

// TestIdempotency: one key is one sandbox, as long as it lives.
func TestIdempotency(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	mine := sandbox.Request{IdempotencyKey: "k", Owner: sandbox.Owner{Token: "tok-1"}}
	var group sync.WaitGroup
	made := make(chan *sandbox.Sandbox, 10)
	for range 10 {
		group.Go(func() { made <- d.create(t, mine) })
	}
	group.Wait()
	close(made) // a failed one sends nothing
	s := <-made
	for range 9 {
		if other := <-made; other != s {
			t.Error("there are two")
		}
	}
	other := mine
	other.Task = "another"
	_, err := d.Create(t.Context(), ask(t, other))
	category(t, err, fault.ErrConflict, "idempotency key")
	narrower := mine
	narrower.Narrowing = policy.Narrowing{Deny: []string{policy.Everything}}
	_, err = d.Create(t.Context(), ask(t, narrower))
	category(t, err, fault.ErrConflict, "idempotency key")
	yours := mine
	yours.Owner.Token = "tok-2"
	if d.create(t, yours) == s {
		t.Error("another owner got it")
	}
	if n := len(d.List()); n != 2 {
		t.Errorf("%d sandboxes", n)
	}
	d.next(t)
	if again := d.create(t, mine); again.Info().ID != s.Info().ID {
		t.Error("the next daemon made another")
	}
	if err := d.Destroy(t.Context(), s.Info().ID); err != nil {
		t.Fatal(err)
	}
	if again := d.create(t, mine); again.Info().ID == s.Info().ID {
		t.Error("it is the old one, which is gone")
	}
	d.engine.Fails = func() error { return errors.New("no more") }
	failing := sandbox.Request{IdempotencyKey: "f"}
	if _, err := d.Create(t.Context(), ask(t, failing)); err == nil {
		t.Error("it was made")
	}
	d.engine.Fails = nil
	d.create(t, failing)
}

// TestQuota: many at once do not get past it, what fails gives its share back, and a
// paused one has disk only (C-LI-09).
func TestQuota(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	owner := sandbox.Owner{Token: "tok-1", Quota: token.Quota{Sandboxes: 3, CPU: 6}} // one has 2 CPU
	d.engine.Fails = func() error { return errors.New("no more") }
	for range 5 {
		if _, err := d.Create(t.Context(), ask(t, sandbox.Request{Owner: owner})); errors.Is(err, fault.ErrExhausted) {
			t.Error("what failed keeps its share")
		}
	}
	d.engine.Fails = nil
	var group sync.WaitGroup
	var refused atomic.Int64
	made := make(chan *sandbox.Sandbox, 50)
	for range 50 {
		group.Go(func() {
			s, err := d.Create(t.Context(), ask(t, sandbox.Request{Owner: owner}))
			if err == nil {
				made <- s
				return
			}
			category(t, err, fault.ErrExhausted, "quota")
			refused.Add(1)
		})
	}
	group.Wait()
	if len(made) != 3 || refused.Load() != 47 {
		t.Fatalf("%d were made", len(made))
	}
	one, two := <-made, <-made
	wider := owner
	wider.Quota.Sandboxes = 10
	_, err := d.Create(t.Context(), ask(t, sandbox.Request{Owner: wider}))
	category(t, err, fault.ErrExhausted, "CPU")
	if err := d.Pause(t.Context(), one.Info().ID); err != nil {
		t.Fatal(err)
	}
	four := d.create(t, sandbox.Request{Owner: wider})
	_, err = d.Resume(t.Context(), one.Info().ID)
	category(t, err, fault.ErrExhausted, "CPU")
	wantState(t, one, sandbox.Paused)
	d.next(t) // what is used is known to the next daemon, too
	_, err = d.Create(t.Context(), ask(t, sandbox.Request{Owner: wider}))
	category(t, err, fault.ErrExhausted, "CPU")
	for _, id := range []string{two.Info().ID, four.Info().ID} {
		if err := d.Destroy(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Resume(t.Context(), one.Info().ID); err != nil {
		t.Error(err)
	}
}

// heldJournal does not write that a sandbox is being frozen before it is let go.
type heldJournal struct {
	sandbox.Journal
	reached, release chan struct{}
}

func (j *heldJournal) Move(ctx context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	if e.State == sandbox.Freezing {
		close(j.reached)
		<-j.release
	}
	return j.Journal.Move(ctx, e, ev)
}

// noticedContext tells when somebody waits for its end.
type noticedContext struct {
	context.Context //nolint:containedctx // it is one
	tell            func()
}

func (n noticedContext) Done() <-chan struct{} {
	n.tell()
	return n.Context.Done()
}

// TestQuotaOfOneThatIsBeingPaused: who resumes a sandbox before it is on disk has
// its share counted again (C-LI-09).
func TestQuotaOfOneThatIsBeingPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := &heldJournal{reached: make(chan struct{}), release: make(chan struct{})}
	w.Journal = func(j sandbox.Journal) sandbox.Journal {
		held.Journal = j
		return held
	}
	d := w.daemon(t)
	owner := sandbox.Owner{Token: "tok-1", Quota: token.Quota{CPU: 2}} // as many as one has
	s := d.create(t, sandbox.Request{Owner: owner})
	var group sync.WaitGroup
	group.Go(func() {
		if err := d.Pause(t.Context(), s.Info().ID); err != nil {
			t.Error(err)
		}
	})
	<-held.reached
	waits := make(chan struct{})
	group.Go(func() {
		ctx := noticedContext{t.Context(), sync.OnceFunc(func() { close(waits) })}
		if _, err := d.Resume(ctx, s.Info().ID); err != nil {
			t.Error(err)
		}
	})
	<-waits
	close(held.release)
	group.Wait()
	wantState(t, s, sandbox.Running)
	_, err := d.Create(t.Context(), ask(t, sandbox.Request{Owner: owner}))
	category(t, err, fault.ErrExhausted, "CPU")
}

// TestRefusedRequests: what no sandbox could be.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	many := map[string]string{}
	for i := range 65 {
		many[fmt.Sprint(i)] = ""
	}
	for name, req := range map[string]sandbox.Request{
		"labels":      {Labels: many},
		"label":       {Labels: map[string]string{strings.Repeat("x", 257): ""}},
		"bytes long":  {Labels: map[string]string{"x": strings.Repeat("x", 4097)}},
		"lifetime":    {Lifetime: sandbox.Lifetime{TTL: -1}},
		"idle":        {Lifetime: sandbox.Lifetime{Idle: 366 * 24 * time.Hour}},
		"pause":       {Lifetime: sandbox.Lifetime{Then: "explode"}},
		"idempotency": {IdempotencyKey: strings.Repeat("k", 257)},
	} {
		_, err := d.Create(t.Context(), ask(t, req))
		category(t, err, fault.ErrInvalid, name)
	}
	labels := map[string]string{}
	for i := range 64 {
		labels[fmt.Sprint(i)] = strings.Repeat("x", 4096)
	}
	s := d.create(t, sandbox.Request{Labels: labels}) // more than the keeper keeps
	d.next(t)
	again, err := d.Get(s.Info().ID)
	if err != nil || len(again.Info().Labels) != 64 {
		t.Errorf("%v, %v", again, err)
	}
}

// TestExtensionsOnRecord: at most one a minute.
func TestExtensionsOnRecord(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{})
	for range 20 {
		if err := d.SetLifetime(t.Context(), s.Info().ID, sandbox.Lifetime{TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := d.records(t, s.Info().ID), []audit.Outcome{audit.Started, audit.Extended}; !slices.Equal(got, want) {
		t.Errorf("on record are %v, want %v", got, want)
	}
}
