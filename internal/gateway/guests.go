package gateway

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// maxGuests bounds how many guests are remembered; the one unseen for longest
// is forgotten, and its quota begins anew.
const maxGuests = 4096

// guests keep each guest's rate and the names that it asked for.
type guests struct {
	limits Limits

	mu   sync.Mutex
	byID map[string]*guest
}

// guest is one sandbox. All fields are guarded by guests.mu.
type guest struct {
	seen   time.Time
	tokens float64 // below zero: turns that were given and are not due yet
	// Projects: those of which something is allowed, those that led to nothing,
	// and those that are being asked for now.
	friends, strangers map[string]bool
	asking             map[string]int
	asked              chan struct{} // closed and replaced when an asking ends
}

func newGuests(l Limits) *guests { return &guests{limits: l, byID: map[string]*guest{}} }

func (gs *guests) get(id string) *guest {
	now := time.Now()
	g := gs.byID[id]
	if g == nil {
		if len(gs.byID) >= maxGuests {
			gs.forgetOldest()
		}
		g = &guest{
			seen: now, tokens: float64(2 * gs.limits.Requests),
			friends: map[string]bool{}, strangers: map[string]bool{}, asking: map[string]int{}, asked: make(chan struct{}),
		}
		gs.byID[id] = g
	}
	g.tokens = min(float64(2*gs.limits.Requests), g.tokens+now.Sub(g.seen).Seconds()*float64(gs.limits.Requests))
	g.seen = now
	return g
}

func (gs *guests) forgetOldest() {
	var oldest string
	for id, g := range gs.byID {
		if oldest == "" || g.seen.Before(gs.byID[oldest].seen) {
			oldest = id
		}
	}
	delete(gs.byID, oldest)
}

// admit takes one request out of the guest's rate, and waits for its turn if
// there is none left: clients give up at a refusal, however soon they could have
// had an answer. It refuses when the turn is too far away, or the client goes.
func (gs *guests) admit(ctx context.Context, id string) bool {
	turn, ok := gs.queue(id)
	if !ok || turn == 0 {
		return ok
	}
	wait := time.NewTimer(turn)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// queue tells how long a request has to wait for its turn. Turns that were given
// count against the rate as if the requests had been answered.
func (gs *guests) queue(id string) (turn time.Duration, ok bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.get(id)
	if g.tokens < 1 {
		turn = time.Duration((1 - g.tokens) / float64(gs.limits.Requests) * float64(time.Second))
	}
	if turn > gs.limits.Queue {
		return 0, false
	}
	g.tokens--
	return turn, true
}

// errStrangers refuses a name without asking anybody about it: names are a
// channel to the outside.
var errStrangers = fault.New(fault.ErrForbidden, "this run has asked for too many different packages that it may not have; it gets no new names")

// ask begins a request about a project. A guest that has used up its strangers
// is refused all names that it has not asked for before; while their number is
// not settled it waits. done settles it: whether something was allowed.
func (gs *guests) ask(id, project string, stop <-chan struct{}) (done func(friend bool), err error) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for {
		g := gs.get(id)
		known := g.friends[project] || g.strangers[project] || g.asking[project] > 0 || g.above(project)
		if known || len(g.strangers)+len(g.asking) < gs.limits.Strangers {
			g.asking[project]++
			return func(friend bool) { gs.settle(g, project, friend) }, nil
		}
		if len(g.asking) == 0 {
			return nil, errStrangers
		}
		asked := g.asked
		gs.mu.Unlock()
		var stopped bool
		select {
		case <-asked:
		case <-stop:
			stopped = true
		}
		gs.mu.Lock()
		if stopped {
			return nil, fault.New(fault.ErrUnavailable, "the client gave up")
		}
	}
}

// above tells whether a name is the beginning of a friend's, up to a slash:
// resolvers that know an import and not its module try all of these, and they
// tell nobody more than the friend's own name does.
func (g *guest) above(project string) bool {
	for friend := range g.friends {
		if strings.HasPrefix(friend, project+"/") {
			return true
		}
	}
	return false
}

func (gs *guests) settle(g *guest, project string, friend bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if g.asking[project]--; g.asking[project] <= 0 {
		delete(g.asking, project)
	}
	switch {
	case friend:
		g.friends[project] = true
		maps.DeleteFunc(g.strangers, func(s string, _ bool) bool { return s == project || strings.HasPrefix(project, s+"/") })
	case !g.friends[project] && !g.above(project):
		g.strangers[project] = true
	}
	close(g.asked)
	g.asked = make(chan struct{})
}
