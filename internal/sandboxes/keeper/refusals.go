package keeper

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// refusals are the streams of a sandbox that were refused unheard, and of which no record tells yet. They are kept by
// the sandbox's id beyond its end, until somebody has taken them: a guest can choose when it opens too many, and when it
// ends.
type refusals struct {
	mu      sync.Mutex // guards what follows
	count   int64
	telling bool          // somebody is about to tell the gateway
	busy    int           // those who may still count, or tell
	changed chan struct{} // closed, and made anew, when nobody is busy any more
	over    bool          // the keeper has forgotten the sandbox

	drop func() // is called when nothing is left of a sandbox that is over; nil: nobody keeps them
}

func newRefusals() *refusals { return &refusals{changed: make(chan struct{})} }

// beginCount counts one in who may count, or tell; endCount counts that one out.
func (r *refusals) beginCount() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy++
}

func (r *refusals) endCount() {
	if r.leaveCount() && r.drop != nil {
		r.drop() // not under r.mu: it takes the server's first
	}
}

// leaveCount does what endCount does, without the dropping. done: nothing is left, and the keeper has forgotten the sandbox.
func (r *refusals) leaveCount() (done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy--; r.busy == 0 {
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return r.over && r.busy == 0 && r.count == 0
}

// addRefusal counts a stream; first: whoever asks is to tell the gateway, and is busy until then.
func (r *refusals) addRefusal() (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if r.telling {
		return false
	}
	r.telling = true
	r.busy++
	return true
}

// takeUntold gives those of whom nobody has been told; 0: there are none, and whoever tells of them is done.
func (r *refusals) takeUntold() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.count
	if r.count = 0; n == 0 {
		r.telling = false
	}
	return n
}

// countBack counts those again who could not be told. last: nobody goes on telling.
func (r *refusals) countBack(n int64, last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count += n
	r.telling = r.telling && !last
}

// settleUntold gives those that are not told, once nobody counts or tells any more, or at the latest when ctx ends: open
// then tells that there may be more. A caller that is given any is busy with them, until end.
func (r *refusals) settleUntold(ctx context.Context) (n int64, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.busy > 0 && ctx.Err() == nil {
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		r.mu.Lock()
	}
	n, open = r.count, r.busy > 0
	if r.count = 0; n > 0 {
		r.busy++
	}
	return n, open
}

// refusedAtOnce is how long refused streams are counted that the gateway is told of at a time, after the first.
const refusedAtOnce = time.Second

// countRefused counts a stream that was refused unheard, and has the gateway told, which puts it on record.
func (u uplink) countRefused(box *sandbox) {
	if box.refusals.addRefusal() {
		safego.Go(func() {
			defer box.refusals.endCount()
			u.tellRefused(box)
		})
	}
}

// tellRefused tells the gateway how many streams were refused: at once, and of those that come meanwhile once a
// second, or when the session ends. Counts that can't be told are told with the next, and those that can't be told at the end are
// kept for who settles it.
func (u uplink) tellRefused(box *sandbox) {
	for n := box.refusals.takeUntold(); n > 0; n = box.refusals.takeUntold() {
		err := u.tellGateway(box, n)
		if err != nil {
			box.log.Warn("the gateway could not be told that streams of a sandbox were refused", slog.String("sandbox", box.id), slog.Int64("streams", n), slog.Any("error", err))
		}
		while := time.NewTimer(refusedAtOnce)
		over := false
		select {
		case <-while.C:
		case <-box.session.Done():
			over = true
		}
		while.Stop()
		if err != nil {
			box.refusals.countBack(n, over)
			if over {
				return
			}
		}
	}
}

// tellGateway tells the gateway once, and waits until that is on record. One that ends without a word may not have heard it.
func (u uplink) tellGateway(box *sandbox, n int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), u.gatewayWait)
	defer cancel()
	raw, err := u.reachGateway(ctx, box.session)
	if err != nil {
		return err
	}
	defer raw.Close() //nolint:errcheck // all is said then
	_ = raw.SetDeadline(time.Now().Add(u.deadline))
	far := channel.NewConn(raw)
	if err := far.WriteJSON(channel.FrameOpen, StreamIdentity{Sandbox: box.id, Refused: int(n)}); err != nil {
		return err
	}
	var heard channel.Reply
	for range 2 { // that it was heard, and whether it is on record
		if err := far.ReadJSON(channel.FrameReply, &heard); err != nil {
			return err
		}
	}
	if !heard.OK {
		return fault.New(fault.ErrUnavailable, "the gateway could not record it: %s", heard.Error)
	}
	return nil
}

// refusalsOf are those of an id, of which a sandbox becomes known. s.mu is held.
func (s *Server) refusalsOf(id string) *refusals {
	r := s.refusals[id]
	if r == nil {
		r = newRefusals()
		r.drop = func() { s.dropRefusals(id) }
		s.refusals[id] = r
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = false
	return r
}

// maxLeftRefusals is of how many forgotten sandboxes the count is kept that nobody has taken. A daemon takes it when it
// writes the end; one of an older release does not, nor one that finds the sandbox lost.
const maxLeftRefusals = 1_024

// dropRefusals forgets those of an id, if the sandbox is forgotten and nothing is left to tell.
func (s *Server) dropRefusals(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropRefusalsLocked(id, false)
}

// dropRefusalsLocked does what dropRefusals does; over: the sandbox is forgotten now. s.mu is held.
func (s *Server) dropRefusalsLocked(id string, over bool) {
	r := s.refusals[id]
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = r.over || over; r.over && r.busy == 0 && r.count == 0 {
		delete(s.refusals, id)
	}
	if over && len(s.refusals)-len(s.sandboxes) > maxLeftRefusals {
		s.dropOneOfOthers(id)
	}
}

// dropOneOfOthers gives up the count of a sandbox that was forgotten earlier, whichever that is. s.mu is held.
func (s *Server) dropOneOfOthers(id string) {
	for other, r := range s.refusals {
		if other == id || s.sandboxes[other] != nil {
			continue
		}
		r.mu.Lock()
		idle, count := r.over && r.busy == 0, r.count
		r.mu.Unlock()
		if idle {
			s.log.Warn("nobody asks for what forgotten sandboxes were refused; the count of one is given up", slog.String("sandbox", other), slog.Int64("streams", count))
			delete(s.refusals, other)
			return
		}
	}
}

// settleTime bounds how long a sandbox's streams may take to end with it.
const settleTime = 4 * time.Second

// Settled is what is left of a sandbox's streams when it ends.
type Settled struct {
	// Refused is how many were refused unheard of which the gateway has not been told. The asker has them put
	// on record.
	Refused int `json:"refused,omitempty"`
	// Open: some go on, so that there may be more.
	Open bool `json:"open,omitempty"`
}

// settleStreams answers what is left of a sandbox's streams, whether or not the keeper still knows
// the sandbox. A count that the client does not confirm by asking once more stays.
func (s *Server) settleStreams(ctx context.Context, conn *channel.Conn, id string) {
	s.mu.Lock()
	r := s.refusals[id]
	s.mu.Unlock()
	if r == nil {
		sendResponse(conn, Response{OK: true, Settled: &Settled{}})
		return
	}
	defer s.dropRefusals(id)
	within, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	n, open := r.settleUntold(within)
	sendResponse(conn, Response{OK: true, Settled: &Settled{Refused: int(n), Open: open}})
	if n == 0 {
		return
	}
	defer r.endCount()
	_ = conn.Raw().SetReadDeadline(time.Now().Add(requestTimeout))
	var again Request
	if err := conn.ReadStrictJSON(channel.FrameOpen, &again); err != nil || again.Verb != VerbSettle {
		r.countBack(n, false)
	}
}

// Settle waits, at most some seconds, until the streams of a sandbox that has ended have, and has record put
// on record how many were refused of which the gateway could not be told. A count that is not recorded is
// kept for the next asker. open: some streams go on. A fault.ErrUnavailable of a keeper of an older release.
func (c *Client) Settle(ctx context.Context, id string, record func(refused int) error) (open bool, err error) {
	req := Request{Verb: VerbSettle, ID: id}
	err = c.converse(ctx, req, nil, func(l *link) error {
		r, err := l.receiveResponse()
		if err != nil || r.Settled == nil {
			return err
		}
		open = r.Settled.Open
		if r.Settled.Refused == 0 {
			return nil
		}
		if err := record(r.Settled.Refused); err != nil {
			return err
		}
		return l.sendRequest(req, nil)
	})
	return open, err
}
