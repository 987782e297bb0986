package records

import (
	"context"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Connections are those of one sandbox to hosts that have begun and not ended, by their
// records. Safe for concurrent use.
type Connections struct {
	mu      sync.Mutex // guards all below
	open    map[uint64]Connection
	ended   []Connection  // those that ended last, whose requests may still be told
	carried int64         // bytes both ways, of those that have ended
	sleeps  int           // how often the sandbox was written to disk
	settled chan struct{} // closed when none is open; nil: nobody waits
}

// Connection is one of them.
type Connection struct {
	Record    audit.Record // that it began
	Addresses []netip.Addr
	sleeps    int
	told      *uint64 // the number of the last of its requests that is on record
	kept      bool    // its end is known, and was not on record when it came
}

// keptEnded is how many connections that have ended are kept for what is told of their
// requests later. Of earlier ones the log has what is needed: see Recall.
const keptEnded = 256

// NewConnections makes those of a sandbox that has none.
func NewConnections() *Connections { return &Connections{open: map[uint64]Connection{}} }

// Begin takes the record of a connection that begins.
func (c *Connections) Begin(r audit.Record, addresses []netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[r.Seq] = Connection{Record: r, Addresses: slices.Clone(addresses), sleeps: c.sleeps, told: new(uint64)}
}

// End takes that a connection has ended, once, and gives the record that it began.
func (c *Connections) End(seq uint64) (audit.Record, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.open[seq]
	if !ok {
		return audit.Record{}, fault.New(fault.ErrNotFound, "record %d is not a connection of this sandbox that goes on", seq)
	}
	delete(c.open, seq)
	c.ended = append(c.ended, one)
	c.ended = c.ended[max(0, len(c.ended)-keptEnded):]
	if len(c.open) == 0 && c.settled != nil {
		close(c.settled)
		c.settled = nil
	}
	return one.Record, nil
}

// Resume takes an end back that could not be recorded, so that it can be told again.
func (c *Connections) Resume(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range c.ended {
		if one.Record.Seq == seq {
			c.ended = slices.Delete(c.ended, i, i+1)
			c.open[seq] = one
			return
		}
	}
}

// Keep takes that the log did not take an end, which is written later: it may be told again.
func (c *Connections) Keep(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.ended {
		if c.ended[i].Record.Seq == seq {
			c.ended[i].kept = true
		}
	}
}

// Kept reports whether that is so.
func (c *Connections) Kept(seq uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.ended, func(one Connection) bool { return one.Record.Seq == seq && one.kept })
}

// Told reports whether a request of a connection is on record, by its number.
func (c *Connections) Told(one Connection, number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return number != 0 && number <= *one.told
}

// Tell takes that it is.
func (c *Connections) Tell(one Connection, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*one.told = max(*one.told, number)
}

// Carry takes the bytes that a connection has carried by its end.
func (c *Connections) Carry(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.carried = min(c.carried, math.MaxInt64-max(bytes, 0)) + max(bytes, 0)
}

// Carried are the bytes of all that have ended, as far as their ends are on record.
func (c *Connections) Carried() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.carried
}

// Sleep takes that the sandbox was written to disk: what is open does not outlive that.
func (c *Connections) Sleep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sleeps++
}

// Get is a connection that goes on; false: there is none, or its sandbox was written to
// disk since.
func (c *Connections) Get(seq uint64) (Connection, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.open[seq]
	return one, ok && one.sleeps == c.sleeps
}

// Known is a connection of whose requests something can be told: one that goes on, or that
// its sandbox's sleep has cut, or one of those that ended last.
func (c *Connections) Known(seq uint64) (Connection, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, ok := c.open[seq]; ok {
		return one, true
	}
	for _, one := range c.ended {
		if one.Record.Seq == seq {
			return one, true
		}
	}
	return Connection{}, false
}

// Recall takes that a connection began, and has ended, by its record in the log: what is told of
// its requests may come later than it is kept here.
func (c *Connections) Recall(r audit.Record) Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := Connection{Record: r, sleeps: c.sleeps, told: new(uint64)}
	c.ended = append(c.ended, one)
	c.ended = c.ended[max(0, len(c.ended)-keptEnded):]
	return one
}

// Open are the records of what goes on, in their order.
func (c *Connections) Open() []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.open))
}

// Settle waits until none is open, or ctx ends.
func (c *Connections) Settle(ctx context.Context) {
	c.mu.Lock()
	if len(c.open) == 0 {
		c.mu.Unlock()
		return
	}
	if c.settled == nil {
		c.settled = make(chan struct{})
	}
	settled := c.settled
	c.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
}
