package egress

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/budget"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// Pauses between two tries to tell the door what it could not take.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 30 * time.Second
)

// maxUntold is how many ends of a sandbox may wait until the door takes them. Past it the
// sandbox connects to no host and sends no request: what waits is never thrown away.
const maxUntold = 1_024

// report is what became of a connection to a host, or of requests on it.
type report struct {
	seq      uint64 // of the record that the connection began
	requests []door.RequestDone
	end      *door.Disconnection // nil: it goes on
}

// countEnds counts the ends that it tells.
func (r report) countEnds() int {
	if r.end != nil {
		return len(r.requests) + 1
	}
	return len(r.requests)
}

// reports are those that the door could not take yet.
type reports struct {
	memory func(sandbox string) *budget.Budget
	quit   chan struct{} // closed when nothing is tried again

	mu      sync.Mutex // guards what follows
	pending map[string]*outbox
	stopped bool
	retries sync.WaitGroup // to which nothing is added once stopped is set
}

// outbox has a sandbox's reports, in their order.
type outbox struct {
	memory *budget.Budget // the sandbox's
	queue  []report
	size   int
}

// endCost is what an end that waits takes, in bytes, with what its client has made up.
const endCost = 4 << 10

// addReport puts a report behind the others.
func (o *outbox) addReport(one report) {
	o.queue, o.size = append(o.queue, one), o.size+one.countEnds()
	o.memory.Owe(int64(one.countEnds()) * endCost)
}

// newReports makes them; memory is a sandbox's share of the gateway's.
func newReports(memory func(sandbox string) *budget.Budget) *reports {
	return &reports{memory: memory, quit: make(chan struct{}), pending: map[string]*outbox{}}
}

// whyFull is why a sandbox may not go on; "": it may.
func (rs *reports) whyFull(sandbox string) string {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if box := rs.pending[sandbox]; box != nil && box.size >= maxUntold {
		return "what became of this run's earlier requests can't be recorded now, so no others are sent; try again later"
	}
	return ""
}

// followWaiting puts a report behind those of its sandbox that wait; false: none does.
func (rs *reports) followWaiting(sandbox string, one report) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	box := rs.pending[sandbox]
	if box != nil {
		box.addReport(one)
	}
	return box != nil
}

// keepReport has a report that was not taken wait. If none of its sandbox waits yet, retry is
// called in a goroutine of its own.
func (rs *reports) keepReport(sandbox string, one report, retry func()) {
	if rs.followWaiting(sandbox, one) {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.stopped {
		return // the daemon puts on record that the gateway ended
	}
	if box := rs.pending[sandbox]; box != nil { // meanwhile
		box.addReport(one)
		return
	}
	box := &outbox{memory: rs.memory(sandbox)}
	box.addReport(one)
	rs.pending[sandbox] = box
	safego.In(&rs.retries, retry)
}

// nextReport is the sandbox's oldest report; false: none waits any more, and whoever delivers them
// is done.
func (rs *reports) nextReport(sandbox string) (report, bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	box := rs.pending[sandbox]
	if len(box.queue) == 0 {
		delete(rs.pending, sandbox)
		return report{}, false
	}
	return box.queue[0], true
}

// settleReport takes what is left of the sandbox's oldest report.
func (rs *reports) settleReport(sandbox string, left report) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	box := rs.pending[sandbox]
	gone := box.queue[0].countEnds() - left.countEnds()
	box.size -= gone
	box.memory.Give(int64(gone) * endCost)
	if box.queue[0] = left; left.countEnds() == 0 {
		box.queue = slices.Delete(box.queue, 0, 1)
	}
}

// stopTries ends the tries. Reports that wait then are lost with the gateway.
func (rs *reports) stopTries() {
	rs.mu.Lock()
	if !rs.stopped {
		rs.stopped = true
		close(rs.quit)
	}
	rs.mu.Unlock()
	rs.retries.Wait()
}

// tellDoor has the door take a report. A report that it can't take now is told
// later, behind those that wait already.
func (r *Router) tellDoor(ctx context.Context, sandbox string, one report) {
	if one.countEnds() == 0 || r.reports.followWaiting(sandbox, one) {
		return
	}
	if left := r.deliver(ctx, sandbox, one); left.countEnds() > 0 {
		r.reports.keepReport(sandbox, left, func() { r.retryReports(context.WithoutCancel(ctx), sandbox) })
	}
}

// retryReports tells the door again and again what it could not take, with growing pauses.
func (r *Router) retryReports(ctx context.Context, sandbox string) {
	pause := firstPause
	for {
		one, more := r.reports.nextReport(sandbox)
		if !more {
			return
		}
		left := r.deliver(ctx, sandbox, one)
		r.reports.settleReport(sandbox, left)
		if left.countEnds() == 0 {
			pause = firstPause
			continue
		}
		select {
		case <-time.After(pause):
		case <-r.reports.quit:
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// deliver tells the door a report once, and gives what it could not take of it.
func (r *Router) deliver(ctx context.Context, sandbox string, one report) (left report) {
	ctx, cancel := recording(ctx)
	defer cancel()
	left = report{seq: one.seq, end: one.end}
	left.requests = one.requests
	for len(left.requests) > 0 {
		some := left.requests[:min(len(left.requests), requests.Batch)]
		taken := r.deliverRequests(ctx, sandbox, one.seq, some)
		if left.requests = left.requests[taken:]; taken < len(some) {
			return left
		}
	}
	if one.end == nil {
		return left
	}
	if err := r.door.Disconnected(ctx, *one.end); !isSettled(err) {
		r.log.Warn("the end of a connection could not be recorded; it is tried again", "sandbox", sandbox, "error", err)
		return left
	}
	left.end = nil
	return left
}

// deliverRequests tells what became of some requests, and gives how many of them need not be
// told again: if not all together, then one by one, so that one which the door does not take
// keeps no other from the record. They are told in their order, by which the door knows those
// that it has.
func (r *Router) deliverRequests(ctx context.Context, sandbox string, seq uint64, some []door.RequestDone) (taken int) {
	err := r.door.Requested(ctx, door.RequestsDone{Sandbox: sandbox, Connection: seq, Requests: some})
	switch {
	case isSettled(err):
		return len(some)
	case errors.Is(err, fault.ErrInvalid) && len(some) > 1:
		for i := range some {
			if r.deliverRequests(ctx, sandbox, seq, some[i:i+1]) == 0 {
				return i
			}
		}
		return len(some)
	case errors.Is(err, fault.ErrInvalid) && some[0].Path != "":
		return r.deliverRequests(ctx, sandbox, seq, []door.RequestDone{withoutOthersText(some[0])})
	}
	r.log.Warn("what became of requests could not be recorded; it is tried again", "sandbox", sandbox, "requests", len(some), "error", err)
	return 0
}

// withoutOthersText is one without anything that others wrote.
func withoutOthersText(one door.RequestDone) door.RequestDone {
	one.Method, one.Path, one.Rule, one.Problem = "?", "", "", "the door did not take its method and path"
	return one
}

// isSettled tells whether the door needs to be told no more: it took what it was told, or it knows
// no such sandbox or connection any longer, whose end is on record then, or kept until the log takes it.
func isSettled(err error) bool {
	return err == nil || errors.Is(err, fault.ErrForbidden) || errors.Is(err, fault.ErrNotFound)
}
