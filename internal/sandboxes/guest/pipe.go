package guest

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Late output: what a grandchild that holds a pipe open still writes after the
// command's end is waited for this long, then what lies in the pipe is taken,
// and the rest is lost.
const (
	lateOutput  = 100 * time.Millisecond
	pipeContent = 64 << 10
)

// makePipe makes a pipe whose one end is for a child (blocking) and whose other is
// the agent's (non-blocking, so that deadlines work).
func makePipe(childReads bool) (child, ours *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	childFD, ourFD := fds[1], fds[0]
	if childReads {
		childFD, ourFD = fds[0], fds[1]
	}
	child = os.NewFile(uintptr(childFD), "child")
	if err := unix.SetNonblock(ourFD, true); err != nil {
		_ = child.Close()
		_ = unix.Close(ourFD)
		return nil, nil, err
	}
	return child, os.NewFile(uintptr(ourFD), "agent"), nil
}

// frameWriter is where a command's frames go.
type frameWriter interface {
	WriteFrame(kind channel.FrameType, payload []byte) error
}

// pumpOutput sends all that comes from a command's output as frames of type kind,
// until its end, until the deadline that curtail set, or until nobody takes it
// any longer. A stream that the host does not read blocks it, and with it the
// command: that is the back-pressure.
func pumpOutput(from *os.File, to frameWriter, kind channel.FrameType) error {
	buf := make([]byte, channel.MaxPayload)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if err := to.WriteFrame(kind, buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return drainPipe(from, to, kind, buf)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, unix.EIO) {
			return nil // EIO: no process has the terminal open any more
		}
		if err != nil {
			return err
		}
	}
}

// curtail gives a pump a short while more.
func curtail(from *os.File) { _ = from.SetReadDeadline(time.Now().Add(lateOutput)) }

// drainPipe sends what lies in the pipe, at most one pipe's content, and never
// waits for more.
func drainPipe(from *os.File, to frameWriter, kind channel.FrameType, buf []byte) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	for taken := 0; taken < pipeContent; {
		var n int
		err := raw.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), buf) })
		if err != nil || n <= 0 {
			return err
		}
		if err := to.WriteFrame(kind, buf[:n]); err != nil {
			return err
		}
		taken += n
	}
	return nil
}
