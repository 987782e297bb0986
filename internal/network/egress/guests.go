package egress

import (
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/budget"
)

// maxGuests bounds how many sandboxes are remembered beyond those with open
// streams.
const maxGuests = 4096

// sandboxRates keep each sandbox's streams, rate and names.
type sandboxRates struct {
	limits Limits
	now    func() time.Time // by which rates are counted

	mu   sync.Mutex
	byID map[string]*guest
	last uint64 // name of a carried connection
}

// guest is one sandbox. All fields are guarded by guests.mu.
type guest struct {
	streams int
	tokens  float64
	seen    time.Time
	names   map[string]bool      // refused ones
	carried map[string]*carriage // by the name that the guest was told

	connections int           // to hosts
	connects    float64       // more of them that may be made now
	bytes       int64         // that connections have carried
	searches    chan struct{} // bodies of requests that are being looked through
	computing   chan struct{} // those in which patterns are being looked for
	crowd       crowd
	memory      *budget.Budget
}

func newSandboxRates(l Limits, now func() time.Time) *sandboxRates {
	return &sandboxRates{limits: l, now: now, byID: map[string]*guest{}}
}

func (gs *sandboxRates) getGuest(id string) *guest {
	now := gs.now()
	most := float64(4 * gs.limits.Opens)
	g := gs.byID[id]
	if g == nil {
		if len(gs.byID) >= maxGuests {
			gs.forgetOldest()
		}
		g = &guest{tokens: most, connects: float64(4 * gs.limits.Connects), seen: now, names: map[string]bool{}, searches: make(chan struct{}, maxSearches), computing: make(chan struct{}, 1), memory: budget.New(gs.limits.Memory, gs.limits.MemoryTime), crowd: crowd{hurry: make(chan struct{})}}
		gs.byID[id] = g
	}
	g.tokens = min(most, g.tokens+now.Sub(g.seen).Seconds()*float64(gs.limits.Opens))
	g.connects = min(float64(4*gs.limits.Connects), g.connects+now.Sub(g.seen).Seconds()*float64(gs.limits.Connects))
	g.seen = now
	return g
}

// forgetOldest forgets the idle sandbox that was unseen for longest. One is not idle of which something is still to be put on record; when it
// has ended nobody tries that any more, and the reason of its end says so.
func (gs *sandboxRates) forgetOldest() {
	oldest := ""
	for id, g := range gs.byID {
		if g.streams == 0 && (g.crowd.refused == 0 || g.crowd.hurried) && !g.crowd.telling && (oldest == "" || g.seen.Before(gs.byID[oldest].seen)) {
			oldest = id
		}
	}
	delete(gs.byID, oldest)
}

// openStream counts a stream; false: it is one too many.
func (gs *sandboxRates) openStream(id string) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	if g.streams >= gs.limits.Streams || g.tokens < 1 {
		return false
	}
	g.tokens--
	g.streams++
	return true
}

func (gs *sandboxRates) closeStream(id string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.getGuest(id).streams--
}

// countConnection counts a connection to a host in, or says which rule it would break.
func (gs *sandboxRates) countConnection(id string) (rule, problem string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	switch g := gs.getGuest(id); {
	case g.bytes >= gs.limits.Bytes:
		return tooMuch()
	case g.connections >= gs.limits.Connections:
		return door.RuleHostQuota, "the run has as many connections open as it may"
	case g.connects < 1:
		return door.RuleHostQuota, "the run makes more connections in a second than it may"
	case !g.memory.Take(connectionCost):
		return door.RuleHostMemory, g.memory.Sentence()
	default:
		g.connects--
		g.connections++
	}
	return "", ""
}

// connectionCost is what a connection takes in the gateway, in bytes: both ends of its TLS, what
// serves its requests, and the header of one that has not come whole.
const connectionCost = 256 << 10

// enterAnswered takes what a connection that the gateway itself answers takes; leave gives it back.
// problem is why it may not.
func (gs *sandboxRates) enterAnswered(id string) (leave func(), problem string) {
	memory := gs.memory(id)
	if !memory.Take(connectionCost) {
		return nil, memory.Sentence()
	}
	return func() { memory.Give(connectionCost) }, ""
}

// memory is a sandbox's share of the gateway's.
func (gs *sandboxRates) memory(id string) *budget.Budget {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.getGuest(id).memory
}

// reconnect counts a connection in that takes the place of one that was counted already, or
// says which rule it would break.
func (gs *sandboxRates) reconnect(id string) (rule, problem string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	switch g := gs.getGuest(id); {
	case g.bytes >= gs.limits.Bytes:
		return tooMuch()
	case g.connects < 1:
		return door.RuleHostQuota, "the run makes more connections in a second than it may"
	default:
		g.connects--
	}
	return "", ""
}

func (gs *sandboxRates) disconnect(id string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	g.connections--
	g.memory.Give(connectionCost)
}

// carried takes what the daemon knows that a run has carried. It is what this gateway has
// counted and forgotten, or another one counted before it; what goes on is counted here.
func (gs *sandboxRates) carried(id string, bytes int64) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	g.bytes = max(g.bytes, bytes)
}

// maxSearches is how many bodies of a sandbox's requests are looked through at a time: each
// is in memory meanwhile.
const maxSearches = 4

// searches has a place for each of them.
func (gs *sandboxRates) searches(id string) chan struct{} {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.getGuest(id).searches
}

// computing has a place for the one of them in which patterns are being looked for: that takes all of a
// processor, and seconds of a large body.
func (gs *sandboxRates) computing(id string) chan struct{} {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.getGuest(id).computing
}

// spendBytes takes bytes off what a run may carry; false: there are none left.
func (gs *sandboxRates) spendBytes(id string, n int64) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	g.bytes += n
	return g.bytes < gs.limits.Bytes
}

// mayName tells whether name would take a name in.
func (gs *sandboxRates) mayName(id, name string) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	return g.names[name] || len(g.names) < gs.limits.Names
}

// problemMark begins what stands among a sandbox's names for a problem, in words of the gateway's own. There are few of
// those, so each has a place however many names were refused.
const problemMark = "\x00"

// takeName takes a name in; false: the sandbox has asked for too many others.
func (gs *sandboxRates) takeName(id, name string) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	if g.names[name] {
		return true
	}
	if len(g.names) >= gs.limits.Names && !strings.HasPrefix(name, problemMark) {
		return false
	}
	g.names[name] = true
	return true
}

// carriage is a connection of a guest whose client may go.
type carriage struct {
	conn net.Conn
	gone atomic.Bool   // the guest has said so
	over chan struct{} // closed when it is forgotten
}

// carryConn names a guest's connection, until it is forgotten. gone tells whether the guest has hung up.
func (gs *sandboxRates) carryConn(id string, conn net.Conn) (name string, gone func() bool, forget func()) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.last++
	name = strconv.FormatUint(gs.last, 10)
	g := gs.getGuest(id)
	if g.carried == nil {
		g.carried = map[string]*carriage{}
	}
	c := &carriage{conn: conn, over: make(chan struct{})}
	g.carried[name] = c
	return name, c.gone.Load, func() {
		gs.mu.Lock()
		defer gs.mu.Unlock()
		delete(g.carried, name)
		close(c.over)
	}
}

// half is a connection whose directions end each by itself.
type half interface {
	CloseRead() error
	CloseWrite() error
}

// hangUp begins to end a connection whose client has gone: nothing is sent to it any more. It may be read on, so that
// all that the client has said is judged and put on record; see stream.seeOff, for which it gives the connection. nil: there
// is no such connection. A guest has only its own.
func (gs *sandboxRates) hangUp(id, name string) *carriage {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	c := gs.getGuest(id).carried[name]
	if c == nil {
		return nil
	}
	c.gone.Store(true)
	if h, ok := c.conn.(half); !ok || h.CloseWrite() != nil {
		_ = c.conn.Close() // who reads and writes on it sees that
	}
	return c
}

// cutReading ends the reading of a client that has gone, behind all that has come until then.
func (c *carriage) cutReading() {
	if h, ok := c.conn.(half); !ok || h.CloseRead() != nil {
		_ = c.conn.Close() // as above
	}
}
