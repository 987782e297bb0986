package channel

import (
	"io"
	"net"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Conn is one stream of a Session, or any other net.Conn that carries frames.
// Reading frames and raw bytes may alternate freely: a frame read takes not a
// byte more than the frame. One goroutine may read while others write frames.
type Conn struct {
	*Reader
	*Writer
	raw net.Conn
}

// NewConn makes a Conn of a connection that carries frames.
func NewConn(raw net.Conn) *Conn {
	return &Conn{Reader: NewReader(raw), Writer: NewWriter(raw), raw: raw}
}

// Raw is the connection below: what follows the last frame is read from it
// as it is. Use it for deadlines too. On a stream of a session its Close is
// only a half-close; prefer Conn's own Close and CloseWrite.
func (c *Conn) Raw() net.Conn { return c.raw }

// Over is closed when the session of this stream is over: ended, or reset. Of
// what is no session's stream it is nil.
func (c *Conn) Over() <-chan struct{} {
	if s, ok := c.raw.(*muxStream); ok {
		return s.waits.ended
	}
	return nil
}

// OnGiveUp has f called, once, if what the peer has sent on this stream and nobody has read is to be
// given up, because the streams of its session together hold too much. f sees to it that the stream is
// read to its end, whatever becomes of what is read. Of what is no host's stream it does nothing.
func (c *Conn) OnGiveUp(f func()) {
	if s, ok := c.raw.(*muxStream); ok && s.held != nil {
		s.held.onGiveUp(s.Stream, f)
	}
}

// CloseWrite tells the peer that nothing more comes; reading goes on.
func (c *Conn) CloseWrite() error {
	if half, ok := c.raw.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.raw.Close() // a session's stream: Close is the half-close
}

// Close gives the connection up. The multiplexer has no verb for "I read no
// more", and a peer that goes on writing would be stuck with a full window and
// the stream never freed; so a session's stream is drained in the background.
// May block while the peer does not read the session.
func (c *Conn) Close() error {
	err := c.raw.Close()
	if _, ok := c.raw.(*muxStream); ok {
		safego.Go(c.discard)
	}
	return err
}

// Drain closes the connection and returns when the peer has closed it too, or
// the session has ended; what still comes is thrown away.
func (c *Conn) Drain() {
	_ = c.CloseWrite()
	c.discard()
}

func (c *Conn) discard() {
	_ = c.raw.SetReadDeadline(time.Time{})
	_, _ = io.Copy(io.Discard, struct{ io.Reader }{c.raw})
}
