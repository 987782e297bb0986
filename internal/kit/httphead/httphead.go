// Package httphead counts what heads of HTTP take of somebody's memory: status lines and fields,
// before a body and behind it. net/http makes a map of them, which is many times as large as their
// bytes, so a bound of the bytes alone is none.
//
// A head is counted twice: as its bytes come, for as long as nobody knows whether it is whole
// (Meter), and once it is read, by what it has (Cost). Both come out of an Account.
package httphead

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// ErrFull is that an account has no room for a head.
var ErrFull = errors.New("there is no room in memory for the head of an answer")

// Account is somebody's memory, in bytes. It is safe for concurrent use.
type Account interface {
	// Take takes bytes; false: there are not as many left, and nothing was taken.
	Take(bytes int64) bool
	// Give gives back what was taken.
	Give(bytes int64)
}

// Most is how long the head of an answer may be, in bytes.
const Most = 64 << 10

// The memory that heads take, in bytes.
const (
	// PerByte is what one byte of a head takes while it is read, at most: the shortest fields
	// that differ have six of them, and take some 150 bytes and a map that grows.
	PerByte = 32
	// perField is what a field takes in each copy, beside its text.
	perField = 64
	// copies are how often the fields of one that is passed on are kept: as they were read, as
	// they are looked through, as they are handed on, and as they are written.
	copies = 4

	// Slack is what net/http reads beyond the bound that it was told.
	Slack = 4 << 10
	// framedTrailers is what comes behind a body over HTTP/2, whose bound counts 32 bytes for
	// each field, in two copies; plainTrailers what does over HTTP/1, which has to fit into the
	// buffer of the reader.
	framedTrailers = 4 * Most
	plainTrailers  = 4 << 10 * PerByte
)

// Cost is what fields that were read take, and the text that comes with them (a request's path).
func Cost(text int, all ...http.Header) int64 {
	said := text
	for _, fields := range all {
		for name, values := range fields {
			for _, value := range values {
				said += len(name) + len(value) + perField
			}
		}
	}
	return int64(copies * said)
}

// Meter counts a head as its bytes come. The zero value counts nothing. It is safe for concurrent
// use.
type Meter struct {
	mu      sync.Mutex // guards all below
	account Account    // nil: no head is expected
	left    int64      // of what a head may take
	taken   int64
	full    bool
	turn    uint64 // how many heads were expected
}

// Expect has what is read from now on counted, up to what a head of most bytes takes: it is one,
// or may be. turn names that head, for ArrivedAt.
func (m *Meter) Expect(account Account, most int) (turn uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endMeter()
	m.account, m.left, m.full = account, int64(most)*PerByte, false
	m.turn++
	return m.turn
}

// ArrivedAt is Arrived for one head, unless another is expected by now: a transport gives a connection
// to the next request before the one before has been told of its answer. full tells whether there
// was no room for it.
func (m *Meter) ArrivedAt(turn uint64) (full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn != turn {
		return false
	}
	m.endMeter()
	return m.full
}

// Arrived gives all back: the head is read, and counted by what it has, or none comes any more.
func (m *Meter) Arrived() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endMeter()
}

// endMeter needs mu.
func (m *Meter) endMeter() {
	if m.account != nil && m.taken > 0 {
		m.account.Give(m.taken)
	}
	m.account, m.taken = nil, 0
}

// Count counts bytes that were read. The error is ErrFull.
func (m *Meter) Count(bytes int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	more := min(int64(bytes)*PerByte, m.left)
	if m.account == nil || more <= 0 {
		return nil
	}
	if !m.account.Take(more) {
		m.full = true
		return ErrFull
	}
	m.left -= more
	m.taken += more
	return nil
}

// Conn is a connection on which the heads of answers are counted, see Transport, and on which an answer is heard
// though its host takes no more of the request.
type Conn struct {
	net.Conn
	meter Meter

	mu   sync.Mutex    // guards both
	over chan struct{} // closed once nothing more can be read; nil: nobody has asked
	done bool
}

// heardTime is how long a write that has failed leaves a transport to read what the host has said.
const heardTime = 5 * time.Second

// Write implements net.Conn. A host may answer and close the connection before it has taken all of a request, and a
// transport that is told so gives up what it could still read. So a write that fails does that once all was read.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) { // these are our own
		late := time.NewTimer(heardTime)
		defer late.Stop()
		select {
		case <-c.inputEnded():
		case <-late.C:
		}
	}
	return n, err
}

// inputEnded is closed once nothing more can be read.
func (c *Conn) inputEnded() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = make(chan struct{})
		if c.done {
			close(c.over)
		}
	}
	return c.over
}

// endInput takes that nothing more can be read.
func (c *Conn) endInput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done && c.over != nil {
		close(c.over)
	}
	c.done = true
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.endInput()
	}
	if full := c.meter.Count(n); full != nil {
		return 0, full
	}
	return n, err
}

// CloseWrite ends one half, where the connection can: what was upgraded may be answered behind it.
func (c *Conn) CloseWrite() error { return CloseWrite(c.Conn) }

// CloseWrite ends one half of a connection; of one that has no halves, all.
func CloseWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.meter.Arrived()
	c.endInput()
	return c.Conn.Close()
}

// meterOf is that of a connection that a transport has chosen; nil: it has none, or speaks HTTP/2,
// which reads one head after the other and bounds what each becomes.
func meterOf(conn net.Conn) *Meter {
	if secured, ok := conn.(*tls.Conn); ok {
		if secured.ConnectionState().NegotiatedProtocol == "h2" {
			return nil
		}
		conn = secured.NetConn()
	}
	if counted, ok := conn.(*Conn); ok {
		return &counted.meter
	}
	return nil
}
