package daemon

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// strangersEach is how many connections one address may have on which nobody has shown
// a valid token yet.
const strangersEach = 64

// guarded is a listener that keeps connections for who has shown a valid token. One
// that is new is a *stranger*, until a request on it is somebody's (see known). An
// address has so many of them; past that, and past the number of all connections, the
// oldest stranger gives way to the newest: who has a token shows it at once, and who
// has none holds no place by keeping still. One owner has three quarters of all connections at
// most; what it has beyond them stays a stranger, and gives way.
type guarded struct {
	net.Listener
	most int

	mu        sync.Mutex // guards what follows
	strangers *list.List // of *guardedConn, the oldest first
	from      map[netip.Addr]int
	owned     map[string]int // connections by whose they are
	open      int
	room      *sync.Cond // a connection was closed, or the listener
	closed    bool
}

func newGuarded(l net.Listener, most int) *guarded {
	g := &guarded{Listener: l, most: most, strangers: list.New(), from: map[netip.Addr]int{}, owned: map[string]int{}}
	g.room = sync.NewCond(&g.mu)
	return g
}

// guardedConn is one of its connections.
type guardedConn struct {
	net.Conn
	guard *guarded
	from  netip.Addr
	place *list.Element // among the strangers; nil: it is none any more. guard.mu guards it
	owner string        // whose it is, if it is no stranger; guard.mu guards it
	gone  sync.Once
}

// Accept implements net.Listener. Where all connections are somebody's it waits.
func (g *guarded) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &guardedConn{Conn: conn, guard: g, from: networkOf(conn.RemoteAddr())}
	for _, old := range g.enterStranger(c) {
		_ = old.Close()
	}
	return c, nil
}

// enterStranger makes a connection a stranger, and returns those that give way.
func (g *guarded) enterStranger(c *guardedConn) (giveWay []*guardedConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.open >= g.most && g.strangers.Len() == 0 && !g.closed {
		g.room.Wait()
	}
	if g.from[c.from] >= strangersEach {
		giveWay = append(giveWay, g.oldest(func(s *guardedConn) bool { return s.from == c.from }))
	} else if g.open >= g.most && g.strangers.Len() > 0 {
		giveWay = append(giveWay, g.oldest(func(*guardedConn) bool { return true }))
	}
	g.open++
	g.from[c.from]++
	c.place = g.strangers.PushBack(c)
	return giveWay
}

// oldest takes the oldest stranger of a kind, of which there is one. It needs mu.
func (g *guarded) oldest(is func(*guardedConn) bool) *guardedConn {
	for e := g.strangers.Front(); e != nil; e = e.Next() {
		if c, ok := e.Value.(*guardedConn); ok && is(c) {
			g.forgetStranger(c)
			return c
		}
	}
	panic("strangers are counted that are not there")
}

// forgetStranger takes a connection off the strangers. It needs mu.
func (g *guarded) forgetStranger(c *guardedConn) {
	if c.place == nil {
		return
	}
	g.strangers.Remove(c.place)
	c.place = nil
	if g.from[c.from]--; g.from[c.from] == 0 {
		delete(g.from, c.from)
	}
}

// ownConnection makes a stranger somebody's, unless its owner has as many as one may. It needs mu.
func (g *guarded) ownConnection(c *guardedConn, owner string) {
	if c.place == nil || g.owned[owner] >= max(1, g.most*3/4) {
		return
	}
	g.forgetStranger(c)
	g.owned[owner]++
	c.owner = owner
}

// disown takes a connection that is closed from its owner. It needs mu.
func (g *guarded) disown(c *guardedConn) {
	if n := g.owned[c.owner]; n > 1 {
		g.owned[c.owner] = n - 1
	} else {
		delete(g.owned, c.owner)
	}
}

// Close implements net.Listener.
func (g *guarded) Close() error {
	g.mu.Lock()
	g.closed = true
	g.room.Broadcast()
	g.mu.Unlock()
	return g.Listener.Close()
}

// NetConn is the connection below, as tls.Conn has it.
func (c *guardedConn) NetConn() net.Conn { return c.Conn }

// Close implements net.Conn.
func (c *guardedConn) Close() error {
	c.gone.Do(func() {
		c.guard.mu.Lock()
		defer c.guard.mu.Unlock()
		if c.place == nil {
			c.guard.disown(c)
		}
		c.guard.forgetStranger(c)
		c.guard.open--
		c.guard.room.Signal()
	})
	return c.Conn.Close()
}

// networkOf is an address as its holder has it: IPv6 is given out in networks.
func networkOf(a net.Addr) netip.Addr { return networkAt(a.String()) }

// networkAt is networkOf an address with its port.
func networkAt(address string) netip.Addr {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return netip.Addr{}
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}

// connKey is where a request's context has its guarded connection.
type connKey struct{}

// guardContext serves as the http.Server's ConnContext.
func guardContext(ctx context.Context, c net.Conn) context.Context {
	ctx = backend.LingerContext(ctx, c)
	for {
		if one, ok := c.(*guardedConn); ok {
			return context.WithValue(ctx, connKey{}, one)
		}
		outer, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		c = outer.NetConn()
	}
}

// markOwned makes a request's connection its owner's, who has shown what nobody else has.
func markOwned(ctx context.Context, owner string) {
	c, ok := ctx.Value(connKey{}).(*guardedConn)
	if !ok {
		return
	}
	c.guard.mu.Lock()
	defer c.guard.mu.Unlock()
	c.guard.ownConnection(c, owner)
}

// sortOut makes a connection somebody's by its request, or has a stranger's end with
// the answer. Visitors of a sandbox's ports keep theirs, and stay strangers: they show
// nothing, and a page has many parts. So does who speaks HTTP/2: one connection is all
// that a client of it has, and some of them take its announced end for the end of the
// answer that is on its way.
func sortOut(w http.ResponseWriter, r *http.Request, who, owner string) {
	switch who {
	case fromToken, fromSandbox:
		markOwned(r.Context(), owner)
	case fromPort:
	default:
		if r.ProtoMajor >= 2 {
			return
		}
		w.Header().Set("Connection", "close")
	}
}
