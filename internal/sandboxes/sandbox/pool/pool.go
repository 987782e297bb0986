// Package pool keeps sandboxes ready before anybody asks for them.
//
// A member of the pool is an instance that was started, has its agent's files in place and was then
// stopped where it is, so that it uses memory and no CPU.
//
// A member has no run, no policy and no registered identity: nothing that it
// asks for is answered. It gets all that with its claim.
package pool

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Class is an engine's Spec without its id, in a canonical form. It is all that must be equal for
// a request to be served by a member. Equal classes
// mean instances that can't be told apart.
type Class string

// Member is one instance that waits.
type Member struct {
	ID    string
	Class Class
}

// Maker makes members and wakes them. Its methods are called from several
// goroutines.
type Maker interface {
	// Make starts a member and stops it in place. On an error nothing is left.
	Make(ctx context.Context, c Class) (Member, error)
	// Wake lets a member go on; an error means that it is of no use any more.
	Wake(ctx context.Context, m Member) error
	// Discard takes a member away, in any state.
	Discard(ctx context.Context, m Member) error
	// Room tells whether the host can hold one more of a class, and if not, why.
	Room(ctx context.Context, c Class) error
}

// How the pool is filled.
const (
	makeTimeout  = time.Minute
	look         = 30 * time.Second
	backOffLeast = time.Second
	backOffMost  = time.Minute
	// breath is how long the pool leaves the processor to whoever has claimed a
	// member before it makes another, as long as half of them are there.
	breath = 250 * time.Millisecond
)

// Pool keeps members. Safe for concurrent use.
type Pool struct {
	maker Maker
	log   *slog.Logger

	mu      sync.Mutex // guards what follows
	targets map[Class]int
	ready   map[Class][]Member
	wake    chan struct{} // has one element when there may be work
	hits    int64
	misses  int64
	claimed time.Time // the last claim of one that waited
}

// New makes a pool that holds nothing. Run fills it.
func New(maker Maker, log *slog.Logger) *Pool {
	return &Pool{
		maker: maker, log: log,
		targets: map[Class]int{}, ready: map[Class][]Member{},
		wake: make(chan struct{}, 1),
	}
}

// SetTargets replaces how many members of each class there should be.
func (p *Pool) SetTargets(targets map[Class]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.targets)
	for c, n := range targets {
		if n > 0 {
			p.targets[c] = n
		}
	}
	p.notify()
}

// notify wakes Run. Safe with and without mu.
func (p *Pool) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Claim wakes a member of a class and gives it away; false if there is none.
// Members that can't be woken are discarded. One that was claimed never comes back, whatever ran
// in it.
func (p *Pool) Claim(ctx context.Context, c Class) (Member, bool) {
	for {
		m, ok := p.takeMember(c)
		if !ok {
			return Member{}, false
		}
		err := p.maker.Wake(ctx, m)
		if err == nil {
			return m, true
		}
		p.log.Warn("a sandbox of the pool can't be woken and is taken away", "sandbox", m.ID, "err", err)
		p.discard(context.WithoutCancel(ctx), m)
		if ctx.Err() != nil {
			return Member{}, false
		}
	}
}

func (p *Pool) takeMember(c Class) (Member, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := p.ready[c]
	if len(ready) == 0 {
		if p.targets[c] > 0 {
			p.misses++
		}
		return Member{}, false
	}
	m := ready[0] // the oldest: the younger ones may still be warm in the host's cache
	p.ready[c] = ready[1:]
	p.hits++
	p.claimed = time.Now()
	p.notify()
	return m, true
}

// Counts tells how the pool stands.
type Counts struct {
	Ready, Target int
	Hits, Misses  int64
}

// Counts returns them.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Counts{Hits: p.hits, Misses: p.misses}
	for _, members := range p.ready {
		c.Ready += len(members)
	}
	for _, n := range p.targets {
		c.Target += n
	}
	return c
}

// Lost tells that a waiting member has ended by itself: it is discarded, and
// another takes its place. Any other id is passed over.
func (p *Pool) Lost(ctx context.Context, id string) {
	p.mu.Lock()
	var lost Member
	for c, members := range p.ready {
		for i, m := range members {
			if m.ID == id {
				lost = m
				p.ready[c] = append(members[:i:i], members[i+1:]...)
			}
		}
	}
	p.mu.Unlock()
	if lost.ID != "" {
		p.discard(ctx, lost)
		p.notify()
	}
}

func (p *Pool) discard(ctx context.Context, m Member) {
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	if err := p.maker.Discard(ctx, m); err != nil {
		p.log.Error("a sandbox of the pool can't be taken away", "sandbox", m.ID, "err", err)
	}
}

// Run fills the pool, one member at a time and a breath after the last claim (a claim
// or create of somebody who waits comes first), until ctx ends; then it discards what
// the pool holds. Call it once.
func (p *Pool) Run(ctx context.Context) {
	tick := time.NewTicker(look) // room may have come without a word
	defer tick.Stop()
	pause := backOffLeast
	for ctx.Err() == nil {
		p.trimMembers(ctx)
		c, wanted := p.nextLacking()
		if !wanted {
			select {
			case <-p.wake:
			case <-tick.C:
			case <-ctx.Done():
			}
			continue
		}
		if rest := p.restOf(c); rest > 0 {
			awaitSooner(ctx, p.wake, rest)
			continue // there may have been another claim
		}
		if err := p.makeMember(ctx, c); err != nil && ctx.Err() == nil {
			p.log.Warn("the pool can't be filled", "err", err, "again_in", pause)
			awaitSooner(ctx, nil, pause)
			pause = min(2*pause, backOffMost)
			continue
		}
		pause = backOffLeast
	}
	p.SetTargets(nil)
	p.trimMembers(context.WithoutCancel(ctx))
}

// restOf is how long it is until the next member of a class may be made.
func (p *Pool) restOf(c Class) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if 2*len(p.ready[c]) < p.targets[c] {
		return 0
	}
	return time.Until(p.claimed.Add(breath))
}

// nextLacking is a class that lacks a member: the one that lacks most.
func (p *Pool) nextLacking() (Class, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var most Class
	lacks := 0
	for c, n := range p.targets {
		if missing := n - len(p.ready[c]); missing > lacks {
			most, lacks = c, missing
		}
	}
	return most, lacks > 0
}

// makeMember makes one member of a class.
func (p *Pool) makeMember(ctx context.Context, c Class) error {
	m, err := p.makeOne(ctx, c)
	p.mu.Lock()
	kept := err == nil && ctx.Err() == nil && len(p.ready[c]) < p.targets[c]
	if kept {
		p.ready[c] = append(p.ready[c], m)
	}
	p.mu.Unlock()
	if err == nil && !kept {
		p.discard(context.WithoutCancel(ctx), m)
	}
	return err
}

func (p *Pool) makeOne(ctx context.Context, c Class) (Member, error) {
	if err := p.maker.Room(ctx, c); err != nil {
		return Member{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	m, err := p.maker.Make(ctx, c)
	if err == nil && (m.ID == "" || m.Class != c) {
		err = errors.New("the maker gave a member of another class")
	}
	return m, err
}

// trimMembers discards members that are no longer wanted.
func (p *Pool) trimMembers(ctx context.Context) {
	p.mu.Lock()
	var surplus []Member
	for c, members := range p.ready {
		if over := len(members) - p.targets[c]; over > 0 {
			surplus = append(surplus, members[:over]...)
			p.ready[c] = members[over:]
		}
	}
	p.mu.Unlock()
	for _, m := range surplus {
		p.discard(ctx, m)
	}
}

func awaitSooner(ctx context.Context, sooner <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-sooner:
	case <-ctx.Done():
	}
}
