package commands

import (
	"net"
	"sync"
	"time"
)

// How long somebody who went away may take to come back: longer where a command has
// ended and nobody was told.
const (
	abandonedAfter  = 2 * time.Minute
	uncollectedTime = 15 * time.Minute
)

// Clients are those who use a sandbox. Safe for concurrent use.
type Clients struct {
	touched func() // told of each use; must not call back

	mu     sync.Mutex // guards what follows
	here   int        // attached to a command's output, or connected otherwise
	mute   int        // of those, attached ones who say nothing any more, and may be gone
	stay   int        // clients that are there without using it; a lease goes on by them
	unseen bool       // a command has ended and nobody was attached since
	last   time.Time  // that the sandbox was used, or did something
	seen   time.Time  // that a client was there
}

// NewClients makes the clients of a sandbox that was used last when it was made.
func NewClients(made time.Time, touched func()) *Clients {
	return &Clients{touched: touched, last: made, seen: made}
}

// Touch notes that the sandbox is used: it is neither abandoned nor idle.
func (c *Clients) Touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touchClients()
}

// NoteActivity notes that the sandbox did something itself: it is neither abandoned nor idle, and no
// client was there.
func (c *Clients) NoteActivity() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	c.touched()
}

// touchClients needs mu.
func (c *Clients) touchClients() {
	c.last = time.Now()
	c.seen = c.last
	c.touched()
}

// Use counts a client in. The function that it returns counts it out, once.
func (c *Clients) Use() (over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here++
	c.touchClients()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.here--
		c.touchClients()
	})
}

// Stay counts in a client that is there, and does not use the sandbox: its lease goes on, and
// so does the time in which it is idle. The function that it returns counts it out, once.
func (c *Clients) Stay() (over func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stay++
	c.seen = time.Now()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stay--
		c.seen = time.Now()
	})
}

// attach is Use by one who looks at a command's output. Its second result counts it as gone, though
// output may still be written to it.
func (c *Clients) attach() (over, gone func()) {
	leave := c.Use()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unseen = false
	muted, left := false, false
	gone = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !muted && !left {
			muted = true
			c.mute++
			c.touchClients()
		}
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		left = true
		if muted {
			c.mute--
		}
		c.mu.Unlock()
		leave()
	}), gone
}

// Absent is how long no client has been there, whatever the sandbox did; 0: there is one.
func (c *Clients) Absent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.here > c.mute || c.stay > 0 {
		return 0
	}
	return time.Since(c.seen)
}

// commandEnded notes whether somebody sees the end of a command.
func (c *Clients) commandEnded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unseen = c.here == 0
}

// Any tells whether there are clients now.
func (c *Clients) Any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.here > 0
}

// Gone tells whether all clients went away so long ago that none is waited for.
func (c *Clients) Gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := abandonedAfter
	if c.unseen {
		kept = uncollectedTime
	}
	return c.here == 0 && time.Since(c.last) > kept
}

// Connection is a connection into a sandbox that counts as a client until it is closed.
type Connection struct {
	net.Conn
	over func()
}

// Count makes one of a client that over counts out.
func Count(conn net.Conn, over func()) *Connection { return &Connection{Conn: conn, over: over} }

// Close ends the connection. It may be called more than once.
func (c *Connection) Close() error {
	c.over()
	return c.Conn.Close()
}

// CloseWrite ends the client's half.
func (c *Connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// attachment is a client that looks at a command's output: its other half ending is no
// end of that.
type attachment struct {
	*Connection
	gone func()
}

// ClientGone tells that the client closed its end. The output goes on, for one who closed
// no more than a half.
func (a attachment) ClientGone() { a.gone() }

// CloseWrite ends the client's half: no more input, the output goes on.
func (a attachment) CloseWrite() error {
	a.gone()
	if half, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
