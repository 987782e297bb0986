package records

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Limits bound what one sandbox can make the log and the daemon keep.
type Limits struct {
	Records  int // of what the guest causes, before the run is cut
	Names    int // distinct refused names recorded; and as many requests, and tools
	Refusals int // distinct refusals kept for `cofferdam why`
}

// Config is what a Book is made of.
type Config struct {
	Log          audit.Log
	Run, Sandbox string
	User, Token  string        // whose run it is: of each record that does not say otherwise
	Policy       func() string // the digest of the policy in force
	Limits       Limits
	// OnExceeded is called, once and in a goroutine of its own, when the records passed
	// the quota; may be nil.
	OnExceeded func(sandbox string)
	// OnOwed is called when the Book keeps a record that the log did not take, so that somebody has it
	// write that later; may be nil. The Book is locked meanwhile.
	OnOwed func(b *Book)
}

// Book is what one sandbox has on record, and how it comes there. Safe for concurrent
// use. Nothing holds mu while the log is written.
type Book struct {
	config Config

	summing sync.Mutex // held while repeats are written; taken before mu

	mu          sync.Mutex      // guards all below
	used        [quotas]int     // records on each quota
	begun       bool            // there is a record of it
	first, last uint64          // the numbers of its first and last record
	cut         bool            // a quota that cuts the run is used up; for ever
	cutLogged   bool            // and the log says so
	ids         map[string]bool // request ids that are taken
	refusals    map[refusalKey]*refusal
	displayed   map[shownKey]*showing  // what was shown of metadata and pages; nil: it is on record
	shown       []*refusal             // for `cofferdam why`, oldest first
	names       map[Kind]map[told]bool // refused names and their like that have a record of their own
	findings    int                    // that have one
	owed        []owed                 // records that the log did not take, oldest first
	dropped     int                    // of those, past maxOwed
}

// NewBook makes an empty Book.
func NewBook(config Config) *Book {
	return &Book{config: config, ids: map[string]bool{}, refusals: map[refusalKey]*refusal{}, displayed: map[shownKey]*showing{}, names: map[Kind]map[told]bool{}}
}

// Sandbox is whose it is.
func (b *Book) Sandbox() string { return b.config.Sandbox }

// Range is the numbers of the first record and of the last one; begun is false if there
// is none.
func (b *Book) Range() (first, last uint64, begun bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first, b.last, b.begun
}

// appendTime bounds how long a record may take to be written.
const appendTime = 30 * time.Second

// Append appends a record of this sandbox, with a request id of its own unless
// it has one. Past the quota it records that, once, and refuses. That nobody waits for it
// any more keeps no record from being written: a guest could choose what is on record. A record of
// what has happened that the log does not take is kept, and written later: the error is Kept then.
func (b *Book) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	return b.append(ctx, r, maxOwed, func(ctx context.Context, r audit.Record) (audit.Record, error) {
		b.tryOwed(ctx)
		return b.config.Log.Append(ctx, r)
	})
}

// AppendLater appends a record behind one that the log has just not taken: the log is not asked again, as
// it may take its time to refuse each of many. Fewer of them are kept than of others, see Counted.
func (b *Book) AppendLater(ctx context.Context, r audit.Record) (audit.Record, error) {
	return b.append(ctx, r, maxOwedLater, func(_ context.Context, r audit.Record) (audit.Record, error) {
		return r, fault.New(fault.ErrUnavailable, "the log has not taken the record before this one")
	})
}

// append writes a record; of those that the log did not take so many are kept.
func (b *Book) append(ctx context.Context, r audit.Record, most int, write func(context.Context, audit.Record) (audit.Record, error)) (audit.Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTime)
	defer cancel()
	r, used, err := b.completeRecord(ctx, r)
	if err != nil {
		return r, err
	}
	kept := r
	r, err = write(ctx, r)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.noteSeq(r.Seq)
	case custodyOf(kept) == theBook && !errors.Is(err, fault.ErrInvalid):
		err = &keptError{err, !b.oweRecord(kept, used, most)}
	case used != nil:
		*used--
	}
	return r, err
}

// completeRecord puts in what all records of the sandbox have, and counts one that counts: used, which mu
// guards, is what in; nil: it does not count.
func (b *Book) completeRecord(ctx context.Context, r audit.Record) (completed audit.Record, used *int, err error) {
	r.Run, r.Sandbox, r.Policy = b.config.Run, b.config.Sandbox, b.config.Policy()
	r.User, r.Token = cmp.Or(r.User, b.config.User), cmp.Or(r.Token, b.config.Token)
	b.mu.Lock()
	if r.RequestID == "" && r.Kind != audit.KindFile { // which nobody is shown the id of, and each small call makes two
		r.RequestID = b.newID()
	}
	of := b.charged(r)
	past := b.isPast(of)
	if of == ofQuestions && past && !b.cut {
		b.mu.Unlock()
		return r, nil, b.askedEnough(ctx)
	}
	b.cut = b.cut || past && of != ofQuestions
	refused := past || b.cut && (of == ofRequests || of == ofQuestions) // what has happened is on record of a run that is cut, too
	if of != free && !refused {
		used = &b.used[of]
		*used++
	}
	b.mu.Unlock()
	if refused {
		return r, nil, b.cutOff(ctx)
	}
	return r, used, nil
}

// askedEnough returns the refusal of a question past the quota of those, and puts on record that
// there was one. The run goes on: what it asks of nobody, or the cache has, it is served.
func (b *Book) askedEnough(ctx context.Context) error {
	enough := fault.New(fault.ErrForbidden, "run %s has had more than %d different questions asked, so no others are: what the cache has is served",
		redact.Cut(b.config.Run, 64), questionsFor*b.config.Limits.Records)
	_, err := b.Refuse(ctx, audit.Record{Kind: audit.KindNetwork, Outcome: audit.Exceeded, Rule: "quota.questions", Reason: enough.Error()})
	return errors.Join(enough, err)
}

// noteSeq takes a record's number; mu is held.
func (b *Book) noteSeq(seq uint64) {
	if !b.begun {
		b.begun, b.first = true, seq
	}
	b.first, b.last = min(b.first, seq), max(b.last, seq)
}

// Open is nil as long as the run is not cut; then it is the refusal of all that it asks.
func (b *Book) Open(ctx context.Context) error {
	b.mu.Lock()
	cut := b.cut
	b.mu.Unlock()
	if cut {
		return b.cutOff(ctx)
	}
	return nil
}

// cutOff returns the refusal of a run that is cut, and sees to it that the log
// says so.
func (b *Book) cutOff(ctx context.Context) error {
	cut := fault.New(fault.ErrForbidden, "run %s has made more than %d records, so all its further requests are refused",
		redact.Cut(b.config.Run, 64), b.config.Limits.Records)
	b.mu.Lock()
	known := b.cutLogged
	b.cutLogged = true
	b.mu.Unlock()
	if known {
		return cut
	}
	_, err := b.Append(ctx, audit.Record{Kind: audit.KindSandbox, Outcome: audit.Exceeded, Rule: "quota.records", Reason: cut.Error()})
	if !Kept(err) {
		b.mu.Lock()
		b.cutLogged = false
		b.mu.Unlock()
		return errors.Join(cut, err)
	}
	if b.config.OnExceeded != nil {
		safego.Go(func() { b.config.OnExceeded(b.config.Sandbox) })
	}
	return cut
}

// newID returns a short id, unique among those of this sandbox; mu is held.
func (b *Book) newID() string {
	const alphabet = "abcdefghijkmnpqrstuvwxyz23456789" // no l, no o, no 0, no 1
	for {
		var random [5]byte
		_, _ = rand.Read(random[:]) // never fails
		id := base32.NewEncoding(alphabet).EncodeToString(random[:])
		if !b.ids[id] {
			b.ids[id] = true
			return id
		}
	}
}

// Kind is what a guest made up that was refused. Each has a quota of its own: who fills one
// keeps nothing of another from the record.
type Kind string

// The kinds.
const (
	KindName    Kind = "name" // of a host
	KindRequest Kind = "request"
	KindTool    Kind = "tool"
)

func recordKind(r audit.Record) Kind {
	switch {
	case r.Kind == audit.KindTool:
		return KindTool
	case r.Detail[DetailRequest] != "":
		return KindRequest
	}
	return KindName
}

// ReserveRecord counts a refused name, request or tool if it is new, and reports whether it may
// have a record of its own. If not, kind is which quota is used up.
func (b *Book) ReserveRecord(r audit.Record) (kind Kind, takes bool) {
	key, kind := b.refusalKeyOf(r), recordKind(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusals[key] != nil {
		return kind, true
	}
	if b.names[kind][key.told] {
		return kind, true // it is being recorded, or that failed and is tried again
	}
	if len(b.names[kind]) >= b.config.Limits.Names {
		return kind, false
	}
	b.countTold(kind, key.told)
	return kind, true
}

// countTold counts one; mu is held.
func (b *Book) countTold(kind Kind, one told) {
	if b.names[kind] == nil {
		b.names[kind] = map[told]bool{}
	}
	b.names[kind][one] = true
}

// maxFindings bounds the findings of one sandbox that have a record of their own.
const maxFindings = 500

// ReserveFinding counts a finding if it is new, and reports whether it may have a record of its
// own.
func (b *Book) ReserveFinding(r audit.Record) bool {
	key := b.refusalKeyOf(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusals[key] != nil {
		return true
	}
	b.findings++
	return b.findings <= maxFindings
}

// Served stops showing what was refused of a release that was served.
func (b *Book) Served(release pkgref.Ref) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hideWithheld(release)
	b.hidePending(release)
}

// Answered stops showing that a host or a call of a tool waits: its request, by id, was
// answered.
func (b *Book) Answered(request string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown = slices.DeleteFunc(b.shown, func(r *refusal) bool {
		return (r.record.Kind == audit.KindNetwork || r.record.Kind == audit.KindTool) && r.record.Outcome == audit.Pending && r.record.Approval == request
	})
}

// Blocked shows a command that was refused. Each is a record, however often it is tried.
func (b *Book) Blocked(r audit.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.showLast(&refusal{record: r, count: 1, logged: 1})
}
