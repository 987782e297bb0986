package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestAdopted: the next daemon goes on with what lives.
func TestAdopted(t *testing.T) {
	t.Parallel()
	many := 40
	if testing.Short() {
		many = 6
	}
	d := newWorld(t).daemon(t)
	var group sync.WaitGroup
	for range many {
		group.Go(func() { d.create(t, sandbox.Request{Labels: map[string]string{"a": "b"}}) })
	}
	group.Wait()
	var ids []string
	for i, s := range d.List() {
		ids = append(ids, s.Info().ID)
		if i%3 == 0 {
			if err := d.Pause(t.Context(), s.Info().ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := d.events(t)
	d.stop(t)
	began := time.Now()
	n, err := d.world.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	*d = *n
	t.Logf("%d were adopted in %s", many, time.Since(began))
	d.wantOnly(t, ids...)
	for i, id := range ids {
		s, err := d.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		want := sandbox.Running
		if i%3 == 0 {
			want = sandbox.Paused
		}
		wantState(t, s, want)
		if s.Info().Labels["a"] != "b" || d.records(t, id)[len(d.records(t, id))-1] != audit.Adopted {
			t.Errorf("%+v, %v", s.Info(), d.records(t, id))
		}
		if !slices.Equal(d.events(t)[id], before[id]) {
			t.Errorf("to be taken over is no change, and %v became %v", before[id], d.events(t)[id])
		}
	}
}

// TestForeignRemains: what the sweep takes away is what nobody knows, and nothing else.
func TestForeignRemains(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{})
	foreign, err := d.engine.Create(t.Context(), engine.Spec{ID: "sbforeign"}) // a launch whose daemon died before it could say so
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.world.path("state", "sandboxes", "sbdead", "fake"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.world.path("frozen", "sbimage"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := d.file.Move(t.Context(), sandbox.Entry{Info: sandbox.Info{ID: "sbentry", Engine: "fake"}, State: sandbox.Creating},
		sandbox.Event{Sandbox: "sbentry", To: sandbox.Creating}); err != nil {
		t.Fatal(err)
	}
	other := exec.CommandContext(t.Context(), "/bin/sleep", "1000", filepath.Join(d.world.Dir, "roots", "sbforeign"))
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	d.KeeperEnded(t.Context()) // reconciles
	d.wantOnly(t, s.Info().ID)
	wantState(t, s, sandbox.Running)
	d.wantEvents(t, "sbentry", sandbox.Creating, sandbox.Failed, sandbox.Destroyed)
	if exit, err := foreign.Wait(t.Context()); err == nil && exit.Code == 0 {
		t.Errorf("%+v", exit)
	}
	if err := other.Process.Kill(); err != nil {
		t.Errorf("a process that nobody here made was ended: %v", err)
	}
	_ = other.Wait()
}

// TestSweepsDuringCreates: what is being made is left alone.
func TestSweepsDuringCreates(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	ctx, cancel := context.WithCancel(t.Context())
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for ctx.Err() == nil {
			d.KeeperEnded(ctx)
		}
	})
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() { d.create(t, sandbox.Request{}) })
	}
	group.Wait()
	cancel()
	sweeps.Wait()
	if n := len(d.List()); n != 12 {
		t.Errorf("%d of 12 live", n)
	}
}

// TestKeeperDies: its sandboxes fail with the reason, nothing of them is left, and
// with the next keeper there can be others.
func TestKeeperDies(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	first := w.runKeeper(t)
	d := w.daemon(t)
	var all []*sandbox.Sandbox
	for range 3 {
		all = append(all, d.create(t, sandbox.Request{}))
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	_, err := d.Create(t.Context(), ask(t, sandbox.Request{}))
	category(t, err, fault.ErrUnavailable)
	second := w.runKeeper(t)
	d.KeeperEnded(t.Context())
	for _, s := range all {
		gone(t, s)
		state, exit := s.State()
		if state != sandbox.Failed || exit == nil || exit.Reason != "its keeper ended, and the sandbox with it" {
			t.Errorf("%s, %+v", state, exit)
		}
	}
	await(t, "nothing is left", func() bool { return len(w.processes()) == 0 })
	d.nothingLeft(t)
	d.wantOneEnd(t)
	s := d.create(t, sandbox.Request{})
	if err := d.Destroy(t.Context(), s.Info().ID); err != nil {
		t.Error(err)
	}
	if err := w.keeper().Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	_ = second.Wait()
}

// TestKeeperDiedWithTheDaemon: it died while nobody looked.
func TestKeeperDiedWithTheDaemon(t *testing.T) {
	t.Parallel()
	w := makeWorld(t)
	first := w.runKeeper(t)
	d := w.daemon(t)
	s := d.create(t, sandbox.Request{})
	d.stop(t)
	_ = first.Process.Kill()
	_ = first.Wait()
	second := w.runKeeper(t)
	n, err := w.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	*d = *n
	await(t, "nothing runs", func() bool { return len(w.processes()) == 0 }) // without a channel its agent ends
	d.nothingLeft(t)
	d.wantEvents(t, s.Info().ID, sandbox.Creating, sandbox.Running, sandbox.Failed, sandbox.Destroyed)
	d.wantOneEnd(t)
	_ = second.Process.Kill()
	_ = second.Wait()
}

// fullDisk is a journal that can't be written while it is full.
type fullDisk struct {
	sandbox.Journal
	mu   sync.Mutex
	full bool
}

func (f *fullDisk) set(full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = full
}

func (f *fullDisk) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return fault.New(fault.ErrUnavailable, "the disk is full")
	}
	return nil
}

func (f *fullDisk) Move(ctx context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	if err := f.check(); err != nil {
		return ev, err
	}
	return f.Journal.Move(ctx, e, ev)
}

func (f *fullDisk) Put(ctx context.Context, e sandbox.Entry) error {
	return errors.Join(f.check(), f.Journal.Put(ctx, e))
}

// TestFullDisk: nothing new is made, what runs lives on and can be paused and taken
// away, and the journal catches up (C-CF-05).
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	disk := &fullDisk{}
	w.Journal = func(j sandbox.Journal) sandbox.Journal {
		disk.Journal = j
		return disk
	}
	d := w.daemon(t)
	one, two := d.create(t, sandbox.Request{}), d.create(t, sandbox.Request{})
	disk.set(true)
	_, err := d.Create(t.Context(), ask(t, sandbox.Request{}))
	category(t, err, fault.ErrUnavailable, "journal", "disk is full")
	if err := d.Destroy(t.Context(), one.Info().ID); err != nil {
		t.Error(err)
	}
	if err := d.Pause(t.Context(), two.Info().ID); err != nil {
		t.Error(err)
	}
	wantState(t, two, sandbox.Paused)
	disk.set(false)
	d.KeeperEnded(t.Context()) // reconciles
	d.wantOnly(t, two.Info().ID)
	d.wantEvents(t, one.Info().ID, sandbox.Creating, sandbox.Running, sandbox.Failed, sandbox.Destroyed)
	d.wantEvents(t, two.Info().ID, sandbox.Creating, sandbox.Running, sandbox.Paused)
	d.create(t, sandbox.Request{})
}

// TestHostWithoutRoom: on a host without room nothing is begun.
func TestHostWithoutRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Reserve = 1 << 60
	d := w.daemon(t)
	_, err := d.Create(t.Context(), ask(t, sandbox.Request{}))
	category(t, err, fault.ErrExhausted, "must stay free")
	if fault.RetryAfter(err) <= 0 {
		t.Error("it does not say when to try again")
	}
	d.nothingLeft(t)
}

// TestEvents: first what was, then what comes; nothing is left out or told twice.
func TestEvents(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	s := d.create(t, sandbox.Request{Owner: sandbox.Owner{Token: "tok-1"}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all, err := d.Events(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	late, err := d.Events(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Destroy(t.Context(), s.Info().ID); err != nil {
		t.Fatal(err)
	}
	for seq, want := range []sandbox.State{sandbox.Creating, sandbox.Running, sandbox.Destroying, sandbox.Destroyed} {
		e := <-all
		if e.Seq != int64(seq+1) || e.To != want || e.Sandbox != s.Info().ID || e.Token != "tok-1" || e.Run == "" {
			t.Errorf("%+v, want %s", e, want)
		}
	}
	if e := <-late; e.Seq != 3 {
		t.Errorf("%+v", e)
	}
	cancel()
	for range all {
		t.Error("there is more")
	}
	_, err = d.Events(t.Context(), 99)
	category(t, err, fault.ErrInvalid)
	for range 64 {
		if _, err := d.Events(t.Context(), 0); err != nil && !errors.Is(err, fault.ErrExhausted) {
			t.Error(err)
		}
	}
	_, err = d.Events(t.Context(), 0)
	category(t, err, fault.ErrExhausted)
}

// runKeeper starts one that the test ends.
func (w *world) runKeeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), w.Init[0], "enginetest-keeper", w.path("keeper.sock"))
	tether, err := cmd.StdinPipe() // it ends with that, see enginetest
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), tether.Close() }) // of a test that failed
	await(t, "the keeper listens", func() bool { return keeper.Dial(w.path("keeper.sock")).Ping(t.Context()) == nil })
	return cmd
}

// meanwhile does something between the reading of the entries and their return, once.
type meanwhile struct {
	sandbox.Journal
	do atomic.Pointer[func()]
}

func (m *meanwhile) Entries(ctx context.Context) ([]sandbox.Entry, error) {
	entries, err := m.Journal.Entries(ctx)
	if do := m.do.Swap(nil); do != nil {
		(*do)()
	}
	return entries, err
}

// TestEndsOnceBesideReconcile: a sandbox that is destroyed while the entries are looked
// through, and two reconciles at once over what is left of one, make one end.
func TestEndsOnceBesideReconcile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var journal meanwhile
	w.Journal = func(j sandbox.Journal) sandbox.Journal {
		journal.Journal = j
		return &journal
	}
	d := w.daemon(t)
	id := d.create(t, sandbox.Request{}).Info().ID
	destroy := func() {
		if err := d.Destroy(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	journal.do.Store(&destroy)
	d.KeeperEnded(t.Context())
	left := d.create(t, sandbox.Request{}).Info().ID
	entries, err := journal.Journal.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Destroy(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	lost := entries[0] // as if its end had not come that far
	lost.Info.ID = "sblost"
	if _, err := journal.Move(t.Context(), lost, sandbox.Event{Sandbox: lost.Info.ID, To: sandbox.Running}); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { d.KeeperEnded(t.Context()) })
	}
	group.Wait()
	for _, id := range []string{id, left, lost.Info.ID} {
		ends := 0
		for _, e := range d.events(t)[id] {
			if strings.HasSuffix(e, ">"+string(sandbox.Destroyed)) {
				ends++
			}
		}
		if ends != 1 {
			t.Errorf("%s ended %d times: %v", id, ends, d.events(t)[id])
		}
	}
}
