// Package suspend is what a sandbox waits for, and its way to disk and back
// meanwhile. It knows engines only as a Body and guests only by two calls.
//
// A sandbox that waits for a person is frozen when the person's grace is over: it is written to
// disk, and its processes end. It is thawed, and goes on from there, once nothing waits any more. A
// pause is a freeze that somebody asked for, for no hold, and that only a resume ends.
//
// The states and what leads from one to the next:
//
//	Running  --grace over, still pending-->  Freezing
//	Freezing --image written-->              Frozen
//	Freezing --it failed-->                  Running, and it waits unfrozen
//	Frozen   --none pending any more-->      Thawing
//	Thawing  --processes run-->              Running
//	Thawing  --it failed four times-->       lost: Config.Lost is told
//	Thawing  --it may not show the host-->   Paused
//	Running  --Pause, PauseFiles-->          Freezing, and then Paused
//	Frozen   --Pause-->                      Paused
//	Paused   --Resume-->                     Thawing, or Frozen if one is pending
//
// An answer while freezing lets the freeze end and thaws at once. Close ends all
// of it in any state.
package suspend

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// State is where a list's sandbox stands.
type State string

// The states.
const (
	Running  State = "running"
	Freezing State = "freezing"
	Frozen   State = "frozen"
	Paused   State = "paused" // frozen, and only a resume ends it
	Thawing  State = "thawing"
)

// maxReason bounds what is kept of a hold's reason.
const maxReason = 512

// Body is a sandbox that can be frozen; engine.Freezer has more.
type Body interface {
	Freeze(ctx context.Context, dir string) error
	FreezeFiles(ctx context.Context, dir string) error // keeps no memory; Thaw starts it anew
	Thaw(ctx context.Context, dir string) error
}

// Queue tells what people have not answered yet.
type Queue interface {
	// Pending returns those of the ids that still wait for an answer, and a
	// channel that is closed when that may have changed. An unknown id does not
	// wait.
	Pending(ctx context.Context, ids []string) (pending []string, changed <-chan struct{}, err error)
}

// Change is something for the record.
type Change struct {
	To        State // Frozen, Paused, Running; with Problem the state that it is in now
	Approvals []string
	Bytes     int64         // of the image
	Took      time.Duration // to freeze or to thaw
	Frozen    time.Duration // how long it was, at a thaw
	Pause     bool          // it was paused meanwhile, at a thaw; or a pause is what failed
	Files     bool          // of a pause: its memory is not kept, and it starts anew
	Problem   string        // why it was not frozen; "": it was
}

// Config is what a List works with. All fields are needed but Body, MayThaw, Memory, Moved and Still.
type Config struct {
	Sandbox string
	Owner   string       // whose share of freezes and thaws it takes: a token; or the sandbox itself, of the host's
	Body    Body         // nil: its engine can't freeze
	MayThaw func() error // an error if something that is shown of the host may not be now, and it stays paused; nil: it may
	Queue   Queue
	Shelf   *Shelf
	After   time.Duration // the grace
	// Clocks tells the guest that the clocks of its commands stand still, or go on. A fault.ErrInvalid is an answer of
	// the guest's, and with another error there was none.
	Clocks func(ctx context.Context, stopped bool) error
	// Woken tells the guest that it was thawed.
	Woken func(ctx context.Context) error
	// Anew gives a guest its identity that was started on the files of a pause. One that
	// has none can't be used: an error means that the sandbox is lost.
	Anew func(ctx context.Context) error
	// Remember keeps what must outlive the daemon; nil: nothing is frozen.
	Remember func(ctx context.Context, s *Saved) error
	// Record puts a change on record.
	Record func(ctx context.Context, c Change)
	// Moved is called after each change of state, by one goroutine at a time and in
	// order; nil: nobody is told.
	Moved func(to State)
	// Still is told that time counts no more, or does again: with the list's lock
	// held, so it must neither block nor call back. nil: nobody is told.
	Still func(still bool)
	// Lost is called, in a goroutine of the list's own, when the sandbox can't be
	// thawed. Close must follow, from another goroutine.
	Lost func(reason string)
	// Memory is about how large an image will be, in bytes; nil: unknown.
	Memory func(ctx context.Context) int64
	Log    *slog.Logger
}

// List is what one sandbox waits for. Safe for concurrent use.
type List struct {
	cfg Config
	// life ends with the daemon: what is frozen stays so for the next one. kill
	// ends with Close only: a freeze or thaw that has begun is not cut short by
	// the daemon's end.
	life, kill context.Context //nolint:containedctx // a list lives as long as its sandbox, not as a call
	end        context.CancelFunc
	stopped    bool           // the guest's clocks stand still; owned by tendList
	work       sync.WaitGroup // tend
	steady     sync.RWMutex   // written by who freezes, from Freezing to Running; read by Steadily

	mu       sync.Mutex // guards what follows
	state    State      // never Paused: that is Frozen, and paused
	paused   bool
	rested   bool   // paused at some time since the freeze
	files    bool   // on the shelf are only its files
	silent   bool   // the guest did not answer when it was told last that its clocks stand still
	pausing  *pause // asked for and not there yet; nil: none
	still    bool   // what Still was told last
	waits    []*wait
	released int           // how often a hold was taken back
	note     string        // why it waits unfrozen; "" if it does not
	withheld error         // why it was paused although nobody asked for that; nil: somebody did
	since    time.Time     // of the freeze
	changed  chan struct{} // closed and replaced at every change
	tended   bool          // tend runs
	closed   bool
}

// wait is a hold and how many requests wait in it.
type wait struct {
	Hold
	clients int
}

// New makes the empty list of a running sandbox. ctx is the daemon's life.
func New(ctx context.Context, cfg Config) *List {
	l := &List{cfg: cfg, life: ctx, state: Running, changed: make(chan struct{})}
	l.kill, l.end = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// TakeOver makes the list of a sandbox that another daemon froze. It thaws when
// none of its holds is pending any more.
func TakeOver(ctx context.Context, cfg Config, s Saved) *List {
	l := New(ctx, cfg)
	for _, h := range s.Holds {
		l.waits = append(l.waits, &wait{Hold: h})
	}
	l.state, l.since, l.stopped = Frozen, s.Since, true
	l.paused, l.rested, l.files, l.silent = s.Paused, s.Paused, s.Files, s.Silent
	l.mu.Lock()
	l.wakeWaiters()
	l.mu.Unlock()
	l.cfg.Shelf.Keep(l.shelfToken(), cfg.Sandbox)
	l.steady.Lock()
	l.tended = true
	safego.In(&l.work, l.tendList)
	return l
}

// TakeOverRunning makes the list of a running sandbox that another daemon had.
// A client that waited then has lost its connection and asks again; the guest's clocks may
// stand still since.
func TakeOverRunning(ctx context.Context, cfg Config) *List {
	l := New(ctx, cfg)
	l.stopped, l.tended = true, true
	safego.In(&l.work, l.tendList)
	return l
}

// Held adds a hold; one that is there already counts one request more.
func (l *List) Held(h Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.files && l.state == Frozen { // of a guest that is no more
		return
	}
	if len(h.Reason) > maxReason {
		h.Reason = h.Reason[:maxReason]
	}
	if w := l.findWait(h); w != nil {
		w.clients++
		w.Freeze = w.Freeze || h.Freeze
	} else {
		h.Since = time.Now().UTC()
		l.waits = append(l.waits, &wait{Hold: h, clients: 1})
	}
	l.wakeWaiters()
	l.attend()
}

// attend sees to it that somebody tends the list. Needs mu.
func (l *List) attend() {
	if !l.tended && l.life.Err() == nil {
		l.tended = true
		safego.In(&l.work, l.tendList)
	}
}

// Released takes a hold back, and returns when the sandbox runs. A sandbox that
// is frozen by then, or on its way there, stays so until the queue has the
// answers: a client that went away (with its gateway) asks again afterwards.
func (l *List) Released(ctx context.Context, h Hold) error {
	l.mu.Lock()
	if w := l.findWait(h); w != nil && w.clients > 0 {
		w.clients--
		l.released++
		l.clearUnawaited()
		l.wakeWaiters()
	}
	l.mu.Unlock()
	return l.AwaitRunning(ctx)
}

// AwaitRunning returns when the sandbox runs; fault.ErrConflict if it never will.
func (l *List) AwaitRunning(ctx context.Context) error {
	for {
		l.mu.Lock()
		state, closed, changed := l.state, l.closed, l.changed
		l.mu.Unlock()
		switch {
		case closed:
			return fault.New(fault.ErrConflict, "the sandbox %s has ended", l.cfg.Sandbox)
		case state == Running:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.life.Done():
			return l.life.Err()
		}
	}
}

// Steadily runs f while the sandbox runs, and keeps it from being frozen until f
// has returned. f should be short. With an error ctx was over before, and f was not
// run.
func (l *List) Steadily(ctx context.Context, f func()) error {
	l.steady.RLock()
	defer l.steady.RUnlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	f()
	return nil
}

// View is a list at one time.
type View struct {
	State   State
	Pausing bool            // a pause is asked for, and is not there yet
	Files   bool            // it is paused, and only its files are kept
	Silent  bool            // it is paused with the memory of a guest that did not answer then
	Holds   []Hold          // oldest first
	Note    string          // why it is not frozen, though it should be
	Changed <-chan struct{} // closed when there is another
}

// View returns what the sandbox waits for now.
func (l *List) View() View {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.shownState()
	v := View{
		State: state, Pausing: l.pausing != nil, Files: l.files && l.state == Frozen, Silent: l.silent && state == Paused && !l.files,
		Note: l.note, Changed: l.changed,
	}
	for _, w := range l.waits {
		v.Holds = append(v.Holds, w.Hold)
	}
	return v
}

// shownState is the state as others see it. Needs mu.
func (l *List) shownState() State {
	if l.state == Frozen && l.paused {
		return Paused
	}
	return l.state
}

// Close ends a freeze or thaw that goes on and everything that waits; nothing is
// done to the sandbox after it has returned. Idempotent.
func (l *List) Close() {
	l.mu.Lock()
	l.closed = true
	l.wakeWaiters()
	l.mu.Unlock()
	l.end()
	l.work.Wait()
}

// findWait needs mu.
func (l *List) findWait(h Hold) *wait {
	i := slices.IndexFunc(l.waits, func(w *wait) bool { return w.Approval == h.Approval && w.Package == h.Package })
	if i < 0 {
		return nil
	}
	return l.waits[i]
}

// clearUnawaited drops the holds that nobody waits in, if the sandbox runs. Needs mu.
func (l *List) clearUnawaited() {
	if l.state != Running {
		return
	}
	l.waits = slices.DeleteFunc(l.waits, func(w *wait) bool { return w.clients == 0 })
	if len(l.waits) == 0 {
		l.note = ""
	}
}

// wakeWaiters lets go whoever waits for a change. Needs mu.
func (l *List) wakeWaiters() {
	close(l.changed)
	l.changed = make(chan struct{})
	still := l.state != Running || len(l.waits) > 0
	if still != l.still && !l.closed && l.cfg.Still != nil {
		l.cfg.Still(still)
	}
	l.still = still
}

// changeState changes the state.
func (l *List) changeState(to State) {
	l.mu.Lock()
	l.state = to
	l.clearUnawaited()
	l.wakeWaiters()
	shown := l.shownState()
	l.mu.Unlock()
	l.tellMoved(shown)
}

// tellMoved tells of a change of state; only who tends the list does.
func (l *List) tellMoved(to State) {
	if l.cfg.Moved != nil {
		l.cfg.Moved(to)
	}
}

// Wait returns when the list has come to rest after the daemon's life has ended.
func (l *List) Wait() { l.work.Wait() }

// shelfToken is whose the sandbox's image is on the shelf; "": the host's.
func (l *List) shelfToken() string {
	if l.cfg.Owner == l.cfg.Sandbox {
		return ""
	}
	return l.cfg.Owner
}
