package admission

import (
	"context"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxGone is how many sandboxes that have ended are kept for what is told of their requests
// later.
const maxGone = 256

// afterlife takes what is told of requests whose sandbox has ended meanwhile: it could end
// before the gateway comes to telling that.
type afterlife struct {
	mu    sync.Mutex // guards both; the log is neither read nor written under it
	of    map[string]*goneSandbox
	order []string // of those kept, the oldest first
}

// goneSandbox is what is told of one after its end.
type goneSandbox struct {
	mu       sync.Mutex // held while one is told, so that none is on record twice
	hosts    *records.Connections
	told     int  // requests that have come on record since
	exceeded bool // and the log says that there were more
}

// getGone returns what is kept of a sandbox.
func (a *afterlife) getGone(sandbox string) *goneSandbox {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.of[sandbox]; one != nil {
		return one
	}
	if a.of == nil {
		a.of = map[string]*goneSandbox{}
	}
	if len(a.order) >= maxGone {
		delete(a.of, a.order[0])
		a.order = a.order[1:]
	}
	one := &goneSandbox{hosts: records.NewConnections()}
	a.of[sandbox], a.order = one, append(a.order, sandbox)
	return one
}

// requested puts on record what became of requests of a sandbox that is not known any more, or that
// there were more than most. The log says whose its connection was.
func (a *afterlife) requested(ctx context.Context, log audit.Log, done door.RequestsDone, most int) error {
	began, known, err := connectionOf(ctx, log, done.Sandbox, done.Connection)
	if err != nil {
		return err
	}
	if !known {
		return fault.New(fault.ErrNotFound, "record %d is not a connection of this sandbox of which more is taken", done.Connection)
	}
	gone := a.getGone(done.Sandbox) // only now: nobody fills it with names
	gone.mu.Lock()
	defer gone.mu.Unlock()
	one, known := gone.hosts.Known(began.Seq)
	if !known {
		one = gone.hosts.Recall(began)
	}
	for _, request := range done.Requests {
		if gone.hosts.Told(one, request.Number) {
			continue
		}
		r := requestRecord(began, request)
		if gone.told >= most {
			if gone.exceeded {
				continue
			}
			r = tooManyRequests()
		}
		r.Run, r.Sandbox, r.Policy, r.User, r.Token = began.Run, began.Sandbox, began.Policy, began.User, began.Token
		if _, err := log.Append(context.WithoutCancel(ctx), r); err != nil {
			return err
		}
		if r.Outcome == audit.Exceeded {
			gone.exceeded = true
			continue
		}
		gone.told++
		gone.hosts.Tell(one, request.Number)
	}
	return nil
}

// connectionOf is the record that a sandbox's connection began.
func connectionOf(ctx context.Context, log audit.Log, sandbox string, seq uint64) (began audit.Record, known bool, err error) {
	about := audit.Filter{Sandbox: sandbox, Kinds: []audit.Kind{audit.KindNetwork}, Outcomes: []audit.Outcome{audit.Started}, Seqs: []uint64{seq}}
	for r, err := range log.Records(ctx, about) {
		if err != nil {
			return began, false, err
		}
		if r.Seq == seq {
			return r, true, nil
		}
	}
	return began, false, nil
}
