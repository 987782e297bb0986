package egress

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// passages are the connections to hosts that go on.
type passages struct {
	mu   sync.Mutex                   // guards open
	open map[string]map[*passage]bool // by their sandboxes: who looks at those of one does not look at all
}

func (ps *passages) addPassage(p *passage) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.open == nil {
		ps.open = map[string]map[*passage]bool{}
	}
	if ps.open[p.sandbox] == nil {
		ps.open[p.sandbox] = map[*passage]bool{}
	}
	ps.open[p.sandbox][p] = true
}

func (ps *passages) removePassage(p *passage) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.open[p.sandbox], p)
	if len(ps.open[p.sandbox]) == 0 {
		delete(ps.open, p.sandbox)
	}
}

// bySandbox are those of each sandbox, by the records that they began.
func (ps *passages) bySandbox() map[string]map[uint64]*passage {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := map[string]map[uint64]*passage{}
	for sandbox, open := range ps.open {
		all[sandbox] = map[uint64]*passage{}
		for p := range open {
			all[sandbox][p.begun()] = p
		}
	}
	return all
}

// passagesOf are those of a sandbox.
func (ps *passages) passagesOf(sandbox string) []*passage {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return slices.Collect(maps.Keys(ps.open[sandbox]))
}

func (p *passage) begun() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq
}

// watchConnections looks again and again whether connections may go on, until ctx ends. The ends of
// their requests are told beside that: a record takes its time, and a cut must not wait for it.
func (r *Router) watchConnections(ctx context.Context) {
	tick := time.NewTicker(r.limits.Look)
	defer tick.Stop()
	looks, tells := newRounds(), newRounds()
	defer looks.waitRounds()
	defer tells.waitRounds()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for sandbox, open := range r.passages.bySandbox() {
			looks.beginRound(sandbox, func() { r.lookAtSandbox(ctx, sandbox, open) })
			tells.beginRound(sandbox, func() {
				for _, p := range open {
					p.tellDone(ctx)
				}
			})
		}
	}
}

// rounds do something for each sandbox again and again. None waits for another one's, and none
// has two at a time.
type rounds struct {
	group sync.WaitGroup
	mu    sync.Mutex // guards busy
	busy  map[string]bool
}

func newRounds() *rounds { return &rounds{busy: map[string]bool{}} }

// beginRound begins a sandbox's, unless the one before still goes on.
func (rs *rounds) beginRound(sandbox string, do func()) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.busy[sandbox] {
		return
	}
	rs.busy[sandbox] = true
	safego.In(&rs.group, func() {
		defer func() {
			rs.mu.Lock()
			defer rs.mu.Unlock()
			delete(rs.busy, sandbox)
		}()
		do()
	})
}

func (rs *rounds) waitRounds() { rs.group.Wait() }

const guestGone = "the sandbox's end of the connection has gone"

// lookTime bounds a question whether connections may go on.
const lookTime = 5 * time.Second

// lookAtSandbox ends those connections of a sandbox that may not go on any more, and those whose
// sandbox has gone.
func (r *Router) lookAtSandbox(ctx context.Context, sandbox string, open map[uint64]*passage) {
	for _, p := range open {
		if hungUp(p.guest) {
			p.stopConnection(guestGone)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	ended, err := r.door.Standing(ctx, sandbox, slices.Sorted(maps.Keys(open)))
	problem := "it may not go on any more: its policy was narrowed, or its sandbox was paused"
	if err != nil {
		ended, problem = slices.Collect(maps.Keys(open)), "its sandbox has ended, or nobody can say whether it may go on"
	}
	for _, seq := range ended {
		if p := open[seq]; p != nil && p.begun() == seq { // else it has begun another one since
			p.stopConnection(problem)
		}
	}
}

// hungUp tells whether the other end of a connection was closed both ways, which one who
// waits for the host to speak does not see.
func hungUp(conn net.Conn) bool {
	if c, ok := conn.(guestConn); ok {
		conn = c.Conn
	}
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	_ = raw.Control(func(fd uintptr) { // of a closed one there is nothing to tell
		fds := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(fds, 0)
		is = err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0
	})
	return is
}
