package resumable

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// A line begins, in both directions, with the magic and the number of bytes received; then
// frames come: the kind, and a length with as many bytes, or the number of bytes received.
// Numbers have eight bytes, big-endian; lengths four.
const (
	magic     = "tether 1"
	helloSize = len(magic) + 8
	helloWait = 10 * time.Second

	kindData = 'd'
	kindHave = 'h'
	mostData = 32 << 10
)

// connection is one connection.
type connection struct {
	conn Conn
	from *bufio.Reader // the reader's
	left int           // bytes to come of a frame of data; the reader's
	sent uint64        // the sender's position
	told uint64        // what the other end was last told; guarded by the end's mu
}

// Attach gives an end another line, for the one that it has. On an error the connection is
// closed, and there is no line.
func (e *End) Attach(conn Conn) error {
	e.attaching.Lock()
	defer e.attaching.Unlock()
	have := e.beginLine()
	l := &connection{conn: conn, from: bufio.NewReaderSize(conn, mostData), told: have}
	peer, err := l.greetPeer(have)
	if err == nil {
		err = e.installLine(l, peer)
	}
	if err != nil {
		_ = conn.Close()
		return err
	}
	safego.Go(func() { e.sendLoop(l) })
	return nil
}

// beginLine takes the line away that there is, and returns how much was received of it and of
// those before: nothing is counted afterwards.
func (e *End) beginLine() uint64 {
	e.mu.Lock()
	e.detach()
	e.mu.Unlock()
	e.passing.Lock()
	defer e.passing.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.received
}

// greetPeer says how much this end has, and hears how much the other has.
func (l *connection) greetPeer(have uint64) (peer uint64, err error) {
	if err := l.conn.SetDeadline(time.Now().Add(helloWait)); err != nil {
		return 0, err
	}
	if _, err := l.conn.Write(binary.BigEndian.AppendUint64([]byte(magic), have)); err != nil {
		return 0, err
	}
	var hello [helloSize]byte
	if _, err := io.ReadFull(l.from, hello[:]); err != nil {
		return 0, err
	}
	if string(hello[:len(magic)]) != magic {
		return 0, fmt.Errorf("%w: it does not greet", ErrBroken)
	}
	return binary.BigEndian.Uint64(hello[len(magic):]), l.conn.SetDeadline(time.Time{})
}

// installLine makes a line the end's.
func (e *End) installLine(l *connection, peer uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over != nil {
		return e.over
	}
	if e.held {
		return fmt.Errorf("the channel is held: %w", io.ErrClosedPipe)
	}
	if err := e.arrived(peer); err != nil {
		return err
	}
	l.sent = peer
	e.line = l
	e.wakeWaiters()
	return nil
}

// arrived forgets what the other end says that it has. Needs mu.
func (e *End) arrived(have uint64) error {
	if have < e.base || have-e.base > uint64(len(e.pending)) {
		return fmt.Errorf("%w: it has %d bytes, and was sent those from %d to %d", ErrBroken, have, e.base, e.base+uint64(len(e.pending)))
	}
	if have > e.base {
		e.pending = append(e.pending[:0], e.pending[have-e.base:]...)
		e.base = have
		e.wakeWaiters()
	}
	return nil
}

// sendLoop writes to a line for as long as it is the end's.
func (e *End) sendLoop(l *connection) {
	buf := make([]byte, 0, 5+9+mostData)
	for {
		gone := false
		over := e.waitUntil(func() bool {
			gone = e.line != l
			if gone {
				return true
			}
			buf = e.nextBytes(l, buf[:0])
			return len(buf) > 0
		})
		if over != nil || gone {
			return
		}
		if _, err := l.conn.Write(buf); err != nil {
			e.dropLine(l)
			return
		}
	}
}

// nextBytes is what is to be written next. Needs mu.
func (e *End) nextBytes(l *connection, buf []byte) []byte {
	if e.received-l.told >= tellAfter {
		l.told = e.received
		buf = binary.BigEndian.AppendUint64(append(buf, kindHave), l.told)
	}
	if data := e.pending[l.sent-e.base:]; len(data) > 0 {
		data = data[:min(len(data), mostData)]
		buf = binary.BigEndian.AppendUint32(append(buf, kindData), uint32(len(data)))
		buf = append(buf, data...)
		l.sent += uint64(len(data))
	}
	return buf
}

// readData reads bytes of the stream, at least one unless there is an error. Nothing is counted.
func (e *End) readData(l *connection, p []byte) (int, error) {
	for l.left == 0 {
		kind, err := l.from.ReadByte()
		if err != nil {
			return 0, err
		}
		if kind == kindHave {
			err = e.readHeard(l)
		} else {
			err = l.readFrame(kind)
		}
		if err != nil {
			return 0, err
		}
	}
	n, err := l.from.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}

// readHeard reads how much the other end has.
func (e *End) readHeard(l *connection) error {
	var number [8]byte
	if _, err := io.ReadFull(l.from, number[:]); err != nil {
		return err
	}
	have := binary.BigEndian.Uint64(number[:])
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.line != l {
		return io.ErrClosedPipe
	}
	if have > l.sent {
		return fmt.Errorf("%w: it has more than it was sent", ErrBroken)
	}
	return e.arrived(have)
}

// readFrame reads how long a frame of data is.
func (l *connection) readFrame(kind byte) error {
	var length [4]byte
	if kind != kindData {
		return fmt.Errorf("%w: it sends a frame of the kind %d", ErrBroken, kind)
	}
	if _, err := io.ReadFull(l.from, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > mostData {
		return fmt.Errorf("%w: it sends a frame of %d bytes", ErrBroken, n)
	}
	l.left = int(n)
	return nil
}
