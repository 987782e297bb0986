package suspend

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// grace of the tests. Their time is synctest's: nothing takes any.
const grace = 3 * time.Second

// body is a sandbox that can be frozen, as strict as a real one: it refuses to be
// frozen twice, and to be thawed when it runs.
type body struct {
	mu       sync.Mutex
	frozen   bool
	freezes  int
	bare     int // of them, without memory
	thaws    int
	badFrost []error       // what the next freezes return
	badThaw  []error       // what the next thaws return
	gate     chan struct{} // if not nil, freezing and thawing wait for it
	misuse   string
}

func (b *body) Freeze(ctx context.Context, _ string) error {
	return b.change(ctx, true, &b.freezes, &b.badFrost)
}

func (b *body) FreezeFiles(ctx context.Context, _ string) error {
	b.mu.Lock()
	b.bare++
	b.mu.Unlock()
	return b.change(ctx, true, &b.freezes, &b.badFrost)
}

func (b *body) Thaw(ctx context.Context, _ string) error {
	return b.change(ctx, false, &b.thaws, &b.badThaw)
}

func (b *body) change(ctx context.Context, to bool, count *int, bad *[]error) error {
	b.mu.Lock()
	gate := b.gate
	*count++
	if b.frozen == to {
		b.misuse = "it was frozen twice, or thawed while it ran"
	}
	b.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(*bad) > 0 {
		err := (*bad)[0]
		*bad = (*bad)[1:]
		if err != nil {
			return err
		}
	}
	b.frozen = to
	return nil
}

// queue is the people.
type queue struct {
	mu      sync.Mutex
	open    map[string]bool
	changed chan struct{}
	broken  error
}

func newQueue(open ...string) *queue {
	q := &queue{open: map[string]bool{}, changed: make(chan struct{})}
	for _, id := range open {
		q.open[id] = true
	}
	return q
}

func (q *queue) Pending(_ context.Context, ids []string) ([]string, <-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var pending []string
	for _, id := range ids {
		if q.open[id] {
			pending = append(pending, id)
		}
	}
	return pending, q.changed, q.broken
}

func (q *queue) answer(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, id)
	close(q.changed)
	q.changed = make(chan struct{})
}

// stage is a list with all that is around it.
type stage struct {
	*List
	t    *testing.T
	body *body
	q    *queue
	end  context.CancelFunc // of the daemon

	mu      sync.Mutex
	changes []Change
	kept    *Saved
	keeps   int
	clocks  []bool
	mute    error // of the guest
	woken   int
	anew    int
	badAnew error
	lost    []string
	hidden  error // why it may not be thawed
	moves   []State
	stills  []bool
}

func newStage(t *testing.T, open ...string) *stage {
	t.Helper()
	return stageOn(t, NewShelf(t.TempDir(), Room{Bytes: 1 << 30, Count: 10}), nil, open...)
}

func stageOn(t *testing.T, shelf *Shelf, saved *Saved, open ...string) *stage {
	t.Helper()
	return stageOf(t, "", shelf, saved, open...)
}

// stageOf is an owner's.
func stageOf(t *testing.T, owner string, shelf *Shelf, saved *Saved, open ...string) *stage {
	t.Helper()
	s := &stage{t: t, body: &body{frozen: saved != nil}, q: newQueue(open...)}
	ctx, end := context.WithCancel(t.Context())
	s.end = end
	cfg := Config{
		Sandbox: "sb-1", Owner: owner, Body: s.body, Queue: s.q, Shelf: shelf, After: grace, Log: slog.New(slog.DiscardHandler),
		Clocks: func(_ context.Context, stopped bool) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.clocks = append(s.clocks, stopped)
			return s.mute
		},
		Woken: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.woken++
			return nil
		},
		Anew: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.anew++
			return s.badAnew
		},
		Remember: func(_ context.Context, k *Saved) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.kept = k
			s.keeps++
			return nil
		},
		Record: func(_ context.Context, c Change) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changes = append(s.changes, c)
		},
		Lost: func(reason string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lost = append(s.lost, reason)
		},
		MayThaw: func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.hidden
		},
		Memory: func(context.Context) int64 { return 1 << 20 },
		Moved: func(to State) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.moves = append(s.moves, to)
		},
		Still: func(still bool) { s.stills = append(s.stills, still) },
	}
	if saved != nil {
		s.List = TakeOver(ctx, cfg, *saved)
	} else {
		s.List = New(ctx, cfg)
	}
	return s
}

// finish ends the list, which must leave nothing behind, and looks at the body.
func (s *stage) finish() {
	s.t.Helper()
	s.Close()
	s.end()
	if s.body.misuse != "" {
		s.t.Error(s.body.misuse)
	}
}

func hold(approval string) Hold {
	return Hold{Approval: approval, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich", Version: "1"}, Reason: "nobody allows it", Freeze: true}
}

// settle lets everything happen that happens without time.
func (s *stage) settle() { synctest.Wait() }

// pass lets time go by.
func (s *stage) pass(d time.Duration) {
	time.Sleep(d) // fake
	synctest.Wait()
}

func (s *stage) wantState(want State) {
	s.t.Helper()
	if got := s.View().State; got != want {
		s.t.Fatalf("the state is %s, want %s", got, want)
	}
}

func (s *stage) wantChanges(want ...State) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []State
	for _, c := range s.changes {
		got = append(got, c.To)
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("recorded are %v, want %v", s.changes, want)
	}
}

// releasing calls Released in the background; done gets what it returned.
func (s *stage) releasing(h Hold) (done chan error) {
	done = make(chan error, 1)
	go func() { done <- s.Released(s.t.Context(), h) }()
	synctest.Wait()
	return done
}

func (s *stage) wantDone(done chan error, want bool) {
	s.t.Helper()
	select {
	case err := <-done:
		if !want || err != nil {
			s.t.Fatalf("Released has returned %v", err)
		}
	default:
		if want {
			s.t.Fatal("Released has not returned")
		}
	}
}

// frozen brings a list to where its sandbox is frozen for the approvals.
func (s *stage) frozen(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.Held(hold(id))
	}
	s.pass(grace)
	s.wantState(Frozen)
}

var errDisk = errors.New("the disk is on fire")
