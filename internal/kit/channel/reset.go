package channel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// A guest of which a copy was made goes on in the copy with the session of its
// source: with streams that the copy's host knows nothing of, and perhaps in
// the middle of writing a frame. So the host begins with a marker, which is
// never the begin of a frame, and a nonce. The guest ends the session, writes
// both back, and starts a new session on the same connection. All before the echo is of the old session, and thrown away.
//
// It takes a guest that has read whole frames, which Wire.Quiesce saw to when
// the copy was made; a guest that was only copied never sees a marker.
const (
	// markerMagic begins with a byte that is no version of the multiplexer.
	markerMagic = "\xffcofferdam\x01\r"
	nonceSize   = 16
	markerSize  = len(markerMagic) + nonceSize
)

// The bounds of what a host puts up with until a guest has written the marker back: what the
// source had begun to write, and no more time than a slow start takes.
const (
	maxStale     = 64 << 20 // bytes
	resetTimeout = 30 * time.Second
)

// ErrReset is the error of a guest's stream whose session the host ended to
// start another: this guest is a copy, and the stream is its source's.
var ErrReset = errors.New("the host has started the channel anew")

// errNotFrames ends a session to which something came that is neither a frame
// nor a marker.
var errNotFrames = errors.New("what came is not the multiplexer's framing")

// Renew is Plug for a guest that is a copy: it has the guest start a new
// session on conn, for the one that this end has. The wire must be unplugged;
// it owns conn from now on, and closes it if there is an error. A guest that
// does not answer in time, or writes without an end, is a fault.ErrUnavailable.
func (w *Wire) Renew(ctx context.Context, conn net.Conn) error {
	end, err := asHostEnd(conn)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	rest, err := sendMarker(ctx, end)
	if err == nil {
		err = w.plugConn(end, rest)
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	return nil
}

// sendMarker sends a marker and reads to its echo. It returns what was read beyond.
func sendMarker(ctx context.Context, conn net.Conn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	lifted := make(chan struct{})
	stop := safego.When(ctx, func() {
		defer close(lifted)
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	marker := append([]byte(markerMagic), make([]byte, nonceSize)...)
	_, _ = rand.Read(marker[len(markerMagic):]) // never fails
	_, err := conn.Write(marker)
	var rest []byte
	if err == nil {
		rest, err = skipTo(conn, marker)
	}
	if !stop() {
		<-lifted
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the copied sandbox's agent did not start its channel anew")
	}
	return rest, nil
}

// skipTo reads until marker has come, and returns what was read after it.
func skipTo(from io.Reader, marker []byte) ([]byte, error) {
	buf := make([]byte, 0, 128<<10)
	for stale := 0; stale < maxStale; {
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		stale += n
		if at := bytes.Index(buf, marker); at >= 0 {
			return bytes.Clone(buf[at+len(marker):]), nil
		}
		if err != nil {
			return nil, err
		}
		if keep := len(marker) - 1; len(buf) > keep { // it may have begun
			buf = buf[:copy(buf, buf[len(buf)-keep:])]
		}
	}
	return nil, fmt.Errorf("it wrote %d bytes and no answer", maxStale)
}

// trunk is the connection under a guest's sessions, of which there is one at a
// time.
type trunk struct {
	conn    io.ReadWriteCloser
	sending sync.Mutex // held over a write to conn
	held    []byte     // read and not given to a session; owned by the session's one reader
}

// branch is what one session sees of a trunk.
type branch struct {
	*trunk
	framing framing
	over    atomic.Bool               // the trunk is another session's
	renew   func(marker []byte) error // starts that other session
}

// Read gives the session its frames. At a marker the session is over.
func (b *branch) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, ErrReset
	}
	n, err := b.takeBytes(p)
	frames := b.framing.passFrames(p[:n])
	if frames == n {
		return n, err
	}
	b.held = append(bytes.Clone(p[frames:n]), b.held...)
	if frames > 0 {
		return frames, nil
	}
	marker, err := b.marker()
	if err != nil {
		return 0, err
	}
	if err := b.renew(marker); err != nil {
		return 0, err
	}
	return 0, ErrReset
}

func (t *trunk) takeBytes(p []byte) (int, error) {
	if len(t.held) == 0 {
		return t.conn.Read(p)
	}
	n := copy(p, t.held)
	t.held = t.held[n:]
	return n, nil
}

// marker reads a marker whole.
func (t *trunk) marker() ([]byte, error) {
	marker := make([]byte, markerSize)
	for have := 0; have < markerSize; {
		n, err := t.takeBytes(marker[have:])
		have += n
		if compared := min(have, len(markerMagic)); string(marker[:compared]) != markerMagic[:compared] {
			return nil, errNotFrames
		}
		if err != nil && have < markerSize {
			return nil, err
		}
	}
	return marker, nil
}

// Write passes on what the session writes, until the trunk is another's.
func (b *branch) Write(p []byte) (int, error) {
	b.sending.Lock()
	defer b.sending.Unlock()
	if b.over.Load() {
		return 0, ErrReset
	}
	return b.conn.Write(p)
}

// answerMarker takes the trunk away from the session and writes the marker back. A
// write that is under way comes to its end first: the host reads it all.
func (b *branch) answerMarker(marker []byte) error {
	b.over.Store(true)
	b.sending.Lock()
	defer b.sending.Unlock()
	_, err := b.conn.Write(marker)
	return err
}

// Close closes the trunk, unless it is another session's.
func (b *branch) Close() error {
	if b.over.Load() {
		return nil
	}
	return b.conn.Close()
}
