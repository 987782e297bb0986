package admission

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxLedgers is how many records of sandboxes that have copies are kept in memory,
// together and each sandbox counted as one more: the next copies need not read the
// log. One takes about a kilobyte.
const maxLedgers = 8_192

// ledgers are the records of sandboxes that have copies, as far as copies need
// them. Safe for concurrent use.
type ledgers struct {
	mu    sync.Mutex // guards what follows
	of    map[string]*recorded
	order []string // of, the one that was used last at the end
	size  int      // what all of them count, as far as it is known
}

// recorded is one sandbox's. It grows with its log.
type recorded struct {
	mu      sync.Mutex // guards what follows; taken before that of ledgers
	from    uint64
	next    uint64 // the first record that was not read yet
	whole   bool   // the record from which it begins is there
	records []audit.Record
	counted int // in ledgers.size, which owns it
}

// readAncestor returns an ancestor's records that count, in order.
func (l *ledgers) readAncestor(ctx context.Context, log audit.Log, a Ancestor) ([]audit.Record, error) {
	one := l.takeLedger(a)
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.from != a.From {
		return nil, fault.New(fault.ErrConflict, "the records of sandbox %s begin at %d, not at %d", a.Sandbox, one.from, a.From)
	}
	if one.next <= a.Upto {
		if err := one.readOn(ctx, log, a); err != nil {
			l.dropLedger(a.Sandbox, one)
			return nil, err
		}
		l.countGrowth(one)
	}
	end, _ := slices.BinarySearchFunc(one.records, a.Upto+1, func(r audit.Record, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	return one.records[:end:end], nil
}

// readOn reads on, up to the ancestor's last record. Needs mu.
func (l *recorded) readOn(ctx context.Context, log audit.Log, a Ancestor) error {
	var fresh []audit.Record
	whole := l.whole
	for r, err := range log.Records(ctx, audit.Filter{Sandbox: a.Sandbox, FromSeq: l.next}) {
		if err != nil {
			return err
		}
		if r.Seq > a.Upto {
			break
		}
		whole = whole || r.Seq == l.from
		if inherits(r) {
			fresh = append(fresh, r)
		}
	}
	if !whole {
		return fault.New(fault.ErrUnavailable, "the records of sandbox %s are not in the log here any more, so it is not known what is in a copy of it", a.Sandbox)
	}
	l.records, l.whole, l.next = append(l.records, fresh...), true, a.Upto+1
	return nil
}

// inherits tells whether a copy needs a record; tenant.inherit has how.
func inherits(r audit.Record) bool {
	switch r.Kind {
	case audit.KindPackage:
		return r.Outcome != audit.Shown // a copy's own are of what it reads itself
	case audit.KindNetwork:
		return r.Outcome != audit.Started && r.Outcome != audit.Finished // no connection outlives its sandbox
	case audit.KindCommand:
		return r.Outcome == audit.Started || r.Outcome == audit.Blocked
	case audit.KindSandbox:
		return r.Outcome == audit.Exceeded || r.Outcome == audit.Narrowed
	case audit.KindTool: // a copy's own calls are judged anew
	case audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindBuild, audit.KindFinding, audit.KindFile:
	}
	return false
}

func (l *ledgers) takeLedger(a Ancestor) *recorded {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*recorded{}
	}
	one := l.of[a.Sandbox]
	if one == nil {
		one = &recorded{from: a.From, next: a.From}
		l.of[a.Sandbox] = one
	}
	l.order = append(slices.DeleteFunc(l.order, func(id string) bool { return id == a.Sandbox }), a.Sandbox)
	return one
}

// countGrowth takes a ledger's growth into account, and drops those that were not used
// for the longest time.
func (l *ledgers) countGrowth(one *recorded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size += 1 + len(one.records) - one.counted
	one.counted = 1 + len(one.records)
	for l.size > maxLedgers && len(l.order) > 1 {
		l.size -= l.of[l.order[0]].counted
		delete(l.of, l.order[0])
		l.order = l.order[1:]
	}
}

func (l *ledgers) dropLedger(sandbox string, one *recorded) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[sandbox] != one {
		return
	}
	l.size -= one.counted
	delete(l.of, sandbox)
	l.order = slices.DeleteFunc(l.order, func(id string) bool { return id == sandbox })
}
