package scanning

import (
	"errors"
	"io"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// viewed is a body that is looked through, while it passes, in the ways in which servers may take it
// that no header names. Nothing can be redacted there: it is blocked. One goroutine reads.
type viewed struct {
	io.ReadCloser
	look  *look
	views []*view
	// holds tells that the body waits while there may be a value's beginning at its end in a view. A
	// client that has not said how long its body is may wait for an answer to what it has sent.
	holds bool

	raw   []byte // read, and waiting
	ready []byte // may be read
	err   error  // after ready
}

// view is one of the ways.
type view struct {
	stream  requestparts.Stream
	scanner *dlp.Scanner // nil: nothing was read that way
	waits   int          // bytes that may be a value's beginning
}

// maxWaiting bounds what waits for the rest of a value, in bytes.
const maxWaiting = 2 * pieceSize

// viewBody has a body looked through in these ways.
func (l *look) viewBody() {
	v := &viewed{ReadCloser: l.request.Body, look: l, holds: l.plan.Holds() && l.request.ContentLength >= 0}
	for _, stream := range requestparts.Streams() {
		v.views = append(v.views, &view{stream: stream})
	}
	l.request.Body = v
}

// Read implements io.Reader.
func (v *viewed) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(v.ready) == 0 && v.err == nil && len(v.raw) == 0 { // most bodies look like nothing else
		n, err := v.ReadCloser.Read(p)
		if v.err = v.lookThroughMore(p[:n], err); v.err != nil && !errors.Is(v.err, io.EOF) || !v.waiting() {
			if v.err != nil && !errors.Is(v.err, io.EOF) {
				n = 0
			}
			return n, v.err
		}
		v.raw = append(v.raw, p[:n]...)
	}
	for len(v.ready) == 0 && v.err == nil {
		buf := make([]byte, pieceSize)
		n, err := v.ReadCloser.Read(buf)
		v.raw = append(v.raw, buf[:n]...)
		if v.err = v.lookThroughMore(buf[:n], err); v.err == nil && v.waiting() && len(v.raw) < maxWaiting {
			continue
		}
		if v.err == nil || errors.Is(v.err, io.EOF) {
			v.ready = v.raw
		}
		v.raw = nil
	}
	n := copy(p, v.ready)
	if v.ready = v.ready[n:]; len(v.ready) > 0 {
		return n, nil
	}
	return n, v.err
}

// waiting tells whether what was read has to wait.
func (v *viewed) waiting() bool {
	return v.holds && v.err == nil && slices.ContainsFunc(v.views, func(one *view) bool { return one.waits > 0 })
}

// lookThroughMore looks through more of the body. It gives the error with which the body goes on.
func (v *viewed) lookThroughMore(more []byte, err error) error {
	for _, one := range v.views {
		meant := one.stream.Take(more, err != nil)
		if len(meant) == 0 && one.scanner == nil {
			continue
		}
		if one.scanner == nil {
			one.scanner = v.look.set().Scanner(unredacted(v.look.plan), v.look.known...)
		}
		out, found := one.scanner.Write(meant)
		one.waits += len(meant) - len(out)
		if err != nil {
			_, rest := one.scanner.Close()
			found = append(found, rest...)
		}
		if refused := v.look.tellFindings("body", found); refused != nil {
			return refused
		}
	}
	return err
}
