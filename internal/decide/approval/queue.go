package approval

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Config is what a Queue is made of. Store and Log are needed.
type Config struct {
	Store Store
	// Log is where every change is recorded before it takes effect; Open reads
	// what the Store lacks from it.
	Log audit.Log
	// PendingExpires is how long a request waits for an answer; 0 is a week.
	PendingExpires time.Duration
	// AfterRun is how long a request waits on that nobody has looked at, after the last
	// run that asked for it has ended; 0 is a day. See Queue.FollowRuns.
	AfterRun time.Duration
	Limits   Limits
	// Clock is the time by which requests and answers end; nil is the host's, which is
	// believed. After a jump of the host's clock, what is over by either time is over,
	// and stays so.
	Clock clock.Source
	// Mask takes secrets out of the text that people are shown; nil: nothing does.
	Mask func(text string) string
	// Logger is told what goes wrong in the background; nil: nobody is.
	Logger *slog.Logger
}

// Queue is the queue of held requests. It is safe for concurrent use.
//
// Guarantees:
//   - A change has its record, durable, before it takes effect; where the log
//     takes no record nothing changes.
//   - What has its record takes effect: at once, or where the store fails before
//     the next answer that the Queue gives, or after a crash at the next Open.
//   - An approval is bound to the digests that were known of the release when it
//     was given; a file that came later has none.
//   - When Answer or Revoke returns nil, Grants has it.
//
// Not guaranteed: an Append that fails can leave its record in the log (see
// audit.FileLog). After the next Open it counts, as the log says.
type Queue struct {
	cfg  Config
	stop context.CancelFunc
	done chan struct{}

	// write is held while records are appended and applied, so that the store
	// takes them in the log's order, and guards the next two.
	write   sync.Mutex
	behind  []change // recorded, but the store did not take them
	orphans []change // recorded, of a batch that was cut short

	board  *board
	reader requestReader
	grants *grantCache
	wake   chan struct{} // capacity 1: the next expiry may be another

	mu      sync.Mutex    // guards what follows; never held over I/O
	lagging bool          // behind is not empty
	changed chan struct{} // closed at the next change of anything
	last    uint64        // the last event's number
	jumped  bool          // the host's clock has, when it was last read
}

// Open brings the store up to date with the log and starts the clock of
// expiries. The Queue reads and writes both until Close.
func Open(ctx context.Context, cfg Config) (*Queue, error) {
	if cfg.Store == nil || cfg.Log == nil {
		return nil, fault.Invalid("a queue needs a store and a log")
	}
	q := &Queue{
		cfg: cfg.withDefaults(), done: make(chan struct{}),
		board: newBoard(), grants: newGrantCache(cfg.Store), changed: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	q.reader = requestReader{store: cfg.Store, board: q.board, now: q.now, group: q.cfg.Limits.Pending}
	q.write.Lock()
	defer q.write.Unlock()
	if err := q.reconcile(ctx); err != nil {
		return nil, err
	}
	if err := q.loadPending(ctx); err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = stop
	safego.Go(func() {
		defer close(q.done)
		safego.Stay(background, func() { q.runClock(background) })
	})
	return q, nil
}

// Close ends the clock. Calls that wait go on until their contexts end; the
// store and the log are the caller's to close.
func (q *Queue) Close() {
	q.stop()
	<-q.done
}

// loadPending fills what is kept in memory: pending requests are few.
func (q *Queue) loadPending(ctx context.Context) error {
	entries, err := q.cfg.Store.List(ctx, Filter{States: []State{Pending}})
	if err != nil {
		return err
	}
	q.board.takeEntries(entries)
	return nil
}

// commit records the changes and applies them, all or none. The caller holds
// q.write and has been told by ready that nothing is owed.
func (q *Queue) commit(ctx context.Context, changes ...change) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "nothing was changed")
	}
	ctx = context.WithoutCancel(ctx) // what is half done is done
	changes, err := q.withTrees(ctx, changes)
	if err != nil {
		return err
	}
	if len(changes) > 1 {
		id := newID("")
		for i := range changes {
			changes[i].batch = changeBatch{id: id, n: i + 1, of: len(changes)}
		}
	}
	for i := range changes {
		r, err := changes[i].makeRecord()
		if err == nil {
			r, err = q.cfg.Log.Append(ctx, r)
		}
		if err != nil {
			q.orphans = append(q.orphans, changes[:i]...)
			return unrecorded(err)
		}
		changes[i].seq, changes[i].at = r.Seq, plainTime(r.Time)
	}
	if err := q.takeChanges(ctx, changes); err != nil {
		q.behind = append(q.behind, changes...)
		q.setLagging(true)
		return fault.Wrap(fault.ErrUnavailable, err, "the change is on record, and takes effect once the approval queue's store can be written again")
	}
	return nil
}

func unrecorded(err error) error {
	return fault.Wrap(fault.ErrUnavailable, err, "the change can't be recorded, so nothing was changed")
}

// takeChanges applies recorded changes to the store, and then to memory.
func (q *Queue) takeChanges(ctx context.Context, changes []change) error {
	b := Batch{}
	at := map[string]int{} // in b.Entries
	for _, c := range changes {
		i, known := at[c.id]
		if !known {
			e, err := q.cfg.Store.Get(ctx, c.id)
			if err != nil && (c.event != EventAsked || !errors.Is(err, fault.ErrNotFound)) {
				return err
			}
			i = len(b.Entries)
			at[c.id] = i
			b.Entries = append(b.Entries, e)
		}
		b.Entries[i] = applyChange(b.Entries[i], c)
		if c.event != eventSeen && !c.isQuiet(b.Entries[i]) {
			b.Events = append(b.Events, Event{Number: c.seq + 1, At: c.at, Name: c.event, ID: c.id})
		}
		b.Position = Position{Seq: c.seq, At: c.at}
	}
	if err := q.cfg.Store.Apply(ctx, b); err != nil {
		return err
	}
	q.tellWaiters(b)
	return nil
}

// tellWaiters takes what the store took into memory and wakes who waits for it: an answer is
// among the grants before who waited hears of it.
func (q *Queue) tellWaiters(b Batch) {
	q.grants.forgetEntries(b.Entries)
	q.board.takeEntries(b.Entries)
	q.mu.Lock()
	q.last = b.Position.Seq + 1
	close(q.changed)
	q.changed = make(chan struct{})
	q.mu.Unlock()
	q.lookForExpired()
}

// lookForExpired has those recorded whose time is over.
func (q *Queue) lookForExpired() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *Queue) setLagging(lagging bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lagging = lagging
}

// ready makes up for what the store or the log did not take before. The caller
// holds q.write.
func (q *Queue) ready(ctx context.Context) error {
	if err := q.catchUp(ctx); err != nil {
		return err
	}
	for len(q.orphans) > 0 {
		if _, err := q.cfg.Log.Append(context.WithoutCancel(ctx), undone(q.orphans[0])); err != nil {
			return unrecorded(err)
		}
		q.orphans = q.orphans[1:]
	}
	return nil
}

// undone says that a record of the log did not take effect.
func undone(c change) audit.Record {
	return audit.Record{
		Kind: audit.KindApproval, Outcome: audit.Failed, Approval: c.id,
		Ecosystem: string(c.pkg.Ecosystem), Package: c.pkg.Name, InstalledVersion: c.pkg.Version,
		Reason: "A record of this request did not take effect: the others that belong to it could not be written.",
		Detail: c.putDetails(map[string]string{detailEvent: eventUndone, detailBatch: c.batch.id}),
	}
}

// catchUp applies what is on record and not in the store. The caller holds
// q.write.
func (q *Queue) catchUp(ctx context.Context) error {
	if len(q.behind) == 0 {
		return nil
	}
	pos, err := q.cfg.Store.Position(ctx)
	if err == nil {
		todo := q.behind
		for len(todo) > 0 && !pos.At.IsZero() && todo[0].seq <= pos.Seq {
			todo = todo[1:] // it was taken after all
		}
		if len(todo) < len(q.behind) {
			err = q.reload(ctx, q.behind[:len(q.behind)-len(todo)])
		}
		if err == nil && len(todo) > 0 {
			err = q.takeChanges(context.WithoutCancel(ctx), todo)
		}
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the approval queue's store is behind the log and can't be written, so nobody is asked and nothing is approved")
	}
	q.behind = nil
	q.setLagging(false)
	return nil
}

// reload takes into memory what the store has of changes whose Apply failed
// though it was done.
func (q *Queue) reload(ctx context.Context, changes []change) error {
	b := Batch{}
	for _, c := range changes {
		e, err := q.cfg.Store.Get(ctx, c.id)
		if err != nil {
			return err
		}
		b.Entries = append(b.Entries, e)
		b.Position = Position{Seq: c.seq, At: c.at}
	}
	q.tellWaiters(b)
	return nil
}

// checkCurrent is called by whatever only reads: while the store is behind the log it returns an error.
func (q *Queue) checkCurrent(ctx context.Context) error {
	q.mu.Lock()
	lagging := q.lagging
	q.mu.Unlock()
	if !lagging {
		return nil
	}
	q.write.Lock()
	defer q.write.Unlock()
	return q.catchUp(ctx)
}

// now is the time by which requests end. Where the host's clock has just jumped, what is
// over by it is put on record, so that it stays over.
func (q *Queue) now() time.Time {
	r := q.cfg.Clock.Read()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.jumped != r.Jumped() {
		q.jumped = r.Jumped()
		q.lookForExpired()
	}
	return plainTime(r.Latest())
}

// expiryTime is when what begins now and lasts for some time ends: it lasts no longer than
// that, whichever time is right. now is what q.now said.
func (q *Queue) expiryTime(now time.Time, lasts time.Duration) (time.Time, error) {
	r := q.cfg.Clock.Read()
	ends := plainTime(r.Earliest()).Add(lasts)
	if !ends.After(now) {
		return ends, fault.New(fault.ErrConflict, "an answer that lasts %s would have ended already: %s; answer for longer or for ever, or say which time is right (cofferdam clock)", lasts, r.Why())
	}
	return ends, nil
}

// Grants are the answers about a project's releases that hold now for who asks: its run, its
// owner (Token, or User) and its policy. The generation is a digest of them: two equal ones
// mean the same answers.
func (q *Queue) Grants(ctx context.Context, project pkgref.Ref, who Asker) ([]policy.Approval, string, error) {
	if err := q.checkCurrent(ctx); err != nil {
		return nil, "", err
	}
	answers, err := q.grants.answers(ctx, pkgref.Ref{Ecosystem: project.Ecosystem, Name: project.Name}, who)
	if err != nil {
		return nil, "", err
	}
	grants, generation := grantsOf(answers, q.now())
	return grants, generation, nil
}
