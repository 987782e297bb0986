package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

const relayBuffer = 32 << 10

// guestConn is a guest's connection whose guest must read what is written in some time.
type guestConn struct {
	net.Conn
	idle time.Duration
}

// Write implements net.Conn.
func (c guestConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// CloseWrite tells the guest that the host says no more.
func (c guestConn) CloseWrite() error { return closeWrite(c.Conn) }

// metered is the connection to a host: it counts, and ends when nothing comes or goes.
type metered struct {
	net.Conn
	passage *passage
	free    func() // gives its place back
}

// Close implements net.Conn.
func (m *metered) Close() error {
	m.passage.forgetConn(m)
	m.free()
	return m.Conn.Close()
}

// Read implements net.Conn.
func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.passage.in.Add(int64(n))
	return n, m.spendBytes(n, err)
}

// Write implements net.Conn.
func (m *metered) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	m.passage.out.Add(int64(n))
	return n, m.spendBytes(n, err)
}

// CloseWrite tells the host that the guest says no more.
func (m *metered) CloseWrite() error { return closeWrite(m.Conn) }

func (m *metered) touchMeter() error {
	return m.SetDeadline(time.Now().Add(m.passage.router.limits.Idle))
}

var errBytes = errors.New("the run has carried as many bytes as one may")

// spendBytes takes bytes off what the run may carry.
func (m *metered) spendBytes(n int, err error) error {
	p := m.passage
	switch {
	case n > 0 && !p.router.guests.spendBytes(p.sandbox, int64(n)):
		p.stopConnection(errBytes.Error())
		return errBytes
	case n == 0 || err != nil:
		return err
	}
	return m.touchMeter()
}

func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// relayBoth copies both ways until both have ended, passing each half-close on. A break of one way
// ends both: a connection whose other half was lost must not look ended.
func (p *passage) relayBoth(far *metered, guest io.Reader) {
	var both sync.WaitGroup
	safego.In(&both, func() { p.said.Store(p.copyOneWay(far, whole{guest, p.gone})) })
	safego.In(&both, func() { p.copyOneWay(p.guest, far) })
	both.Wait()
}

// whole is what a client says, of which the end is none if its guest has hung up.
type whole struct {
	io.Reader
	gone func() bool
}

// Read implements io.Reader.
func (w whole) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if errors.Is(err, io.EOF) && w.gone() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// copyOneWay copies one way, and tells whether all was passed on.
func (p *passage) copyOneWay(to net.Conn, from io.Reader) bool {
	buf := make([]byte, relayBuffer)
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buf)
	if err == nil {
		err = closeWrite(to)
	}
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		p.stopConnection("nothing came or went for " + p.router.limits.Idle.String())
	default:
		p.stopConnection("")
	}
	return err == nil
}

// tooMuch is how sandboxRates.countConnection says that a run has carried all that it may.
func tooMuch() (rule, problem string) { return door.RuleHostBytes, errBytes.Error() }
