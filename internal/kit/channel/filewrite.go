package channel

import (
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// WriteFile sends all of from on a stream of FileWrite, after its first reply, and returns
// what the guest says of the file. An error of from leaves the file in the sandbox as it
// was, and is returned as it is. When it returns, nobody reads from any more: where the
// guest answers before the end, cut is called, which makes a Read that is under way
// return; without one (nil) that Read is waited for.
func WriteFile(conn *Conn, from io.Reader, cut func()) (FileInfo, error) {
	answered := awaitWritten(conn) // it may come before the end
	sent := make(chan error, 1)
	stop := make(chan struct{})
	safego.Go(func() { sent <- safego.Try(func() error { return sendFile(conn, from, stop) }) })
	var a writeAnswer
	var unsent error
	select {
	case a = <-answered:
		close(stop)
		if a.err != nil {
			_ = conn.Close() // it ends a frame that the guest does not take
		}
		if cut != nil {
			cut()
		}
		unsent = <-sent
	case unsent = <-sent:
		if unsent != nil && !errors.Is(unsent, errUnsent) {
			_ = conn.Close() // before the empty frame, so that nothing is changed
			<-answered
			return FileInfo{}, unsent
		}
		a = <-answered
	}
	if a.err == nil && unsent != nil {
		a.err = fault.Wrap(fault.ErrUnavailable, unsent, "the sandbox's agent took only a part of the file")
	}
	return a.info, a.err
}

// writeAnswer is the end of a write.
type writeAnswer struct {
	info FileInfo
	err  error
}

// awaitWritten waits for the last reply of a write.
func awaitWritten(conn *Conn) <-chan writeAnswer {
	answered := make(chan writeAnswer, 1)
	safego.Go(func() {
		var a writeAnswer
		a.err = safego.Try(func() (err error) {
			a.info, err = readWritten(conn)
			return err
		})
		answered <- a
	})
	return answered
}

func readWritten(conn *Conn) (FileInfo, error) {
	kind, payload, err := conn.ReadFrame()
	switch {
	case err != nil:
		return FileInfo{}, BrokenOff(err)
	case kind != FrameReply:
		return FileInfo{}, stranger(kind, payload)
	}
	return lastReply(payload)
}

// errUnsent: the guest takes no more, or nobody wants to send more. Its answer says why.
var errUnsent = errors.New("not all of it was sent")

// sendFile sends until the end of from, and an empty frame. Its error is from's, or
// errUnsent.
func sendFile(conn *Conn, from io.Reader, stop <-chan struct{}) error {
	buf := make([]byte, MaxPayload)
	for {
		n, err := readMost(from, buf, stop)
		if n > 0 && conn.WriteFrame(FrameStdin, buf[:n]) != nil {
			return errUnsent
		}
		if err == io.EOF { //nolint:errorlint // a reader's end is this one and no other
			if conn.WriteFrame(FrameStdin, nil) != nil {
				return errUnsent
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readMost fills p as far as from goes. Unlike io.ReadFull's its error is from's own: one
// that broke off with io.ErrUnexpectedEOF has not come to its end. After stop it begins no
// Read: errUnsent.
func readMost(from io.Reader, p []byte, stop <-chan struct{}) (n int, err error) {
	for n < len(p) && err == nil {
		select {
		case <-stop:
			return n, errUnsent
		default:
		}
		var got int
		got, err = from.Read(p[n:])
		n += got
	}
	return n, err
}
