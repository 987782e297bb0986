package scanning

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// pieceSize is how much of a body is read at a time.
const pieceSize = 32 << 10

// scannerCost is what looking through a body takes as it passes, in bytes: two pieces, and what
// may be the beginning of something, as it is written and as it may be meant.
const scannerCost = 8 * pieceSize

// joinedCost is what looking through pieces with their lengths takes besides: for each byte of what
// was read, which may be two pieces and grows, where it is in them.
const joinedCost = 32 * pieceSize

// lookThroughBody has the body looked through.
func (l *look) lookThroughBody() error {
	r := l.request
	if r.Header.Get("Upgrade") != "" {
		return l.unseen("it goes on as a WebSocket")
	}
	if why := requestparts.UnreadQuery(r.URL.RawQuery); why != "" {
		return l.unseen(why)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	body := requestparts.BodyOf(r.Header)
	if why := body.Unread(); why != "" {
		return l.unseen(why)
	}
	r.GetBody = nil
	if !body.Plain() && (!body.HasParts() || r.ContentLength <= maxEncoded) {
		if read, err := l.readings(body); read || err != nil {
			return err
		}
	}
	cost := int64(scannerCost)
	if body.Chunked() {
		cost += joinedCost
	}
	if err := requests.Charge(r, cost); err != nil {
		return err
	}
	l.passing(body)
	return nil
}

// passing has the body looked through while it passes.
func (l *look) passing(body requestparts.Body) {
	r := l.request
	scanner := l.set().Scanner(l.plan, l.known...)
	if l.plan.Holds() {
		r.Body = &heldBody{look: l, from: r.Body, scanner: scanner, closed: make(chan struct{})}
	} else {
		r.Body = &watched{ReadCloser: r.Body, look: l, scanner: scanner}
	}
	switch {
	case body.HasParts():
		r.Body = &parted{ReadCloser: r.Body, look: l}
	case body.Chunked():
		r.Body = &joined{ReadCloser: r.Body, look: l, scanner: l.set().Scanner(unredacted(l.plan), l.known...)}
	}
	l.viewBody()
}

// maxWhy bounds why a body is not looked into, in bytes: it has words of the client's in it.
const maxWhy = 120

// unseen puts on record that the body is not looked into, for instance because it is encoded in a way
// that is not read here. Where something would be kept
// from going out, the request is not sent.
func (l *look) unseen(why string) error {
	why = redact.Cut(why, maxWhy)
	ask := l.newAsk("body")
	ask.Unseen, ask.Refused = why, l.plan.Holds()
	answer, err := l.recordAsk(ask)
	if err != nil || !ask.Refused {
		return err
	}
	refusal := l.refusal("what a request carries can't be looked into ("+why+"), and the policy's secret_scanning.requests lets no secret out", answer.RequestID)
	refusal.Status = http.StatusUnsupportedMediaType
	return refusal
}

// lookBehindBody looks through what comes behind a body. It is what the body's end is then.
func (l *look) lookBehindBody(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if refused := l.trailer(); refused != nil {
		return refused
	}
	return err
}

// watched is a body of which nothing is held back. One goroutine reads.
type watched struct {
	io.ReadCloser
	look    *look
	scanner *dlp.Scanner
	err     error // what could not be put on record goes no further
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.ReadCloser.Read(p)
	_, found := w.scanner.Write(p[:n])
	if err != nil {
		_, more := w.scanner.Close()
		found = append(found, more...)
	}
	if w.err = w.look.tellFindings("body", found); w.err != nil {
		return 0, w.err
	}
	if err != nil {
		w.err = w.look.lookBehindBody(err)
	}
	return n, w.err
}

// heldBody is a body of which what may be a value's beginning waits for the rest: as long as a
// scanner's patience lasts, or nobody could wait for an answer to what he has sent. One
// goroutine reads it; another reads what it is made of.
type heldBody struct {
	look    *look
	from    io.ReadCloser
	scanner *dlp.Scanner
	pieces  chan piece // nil: nothing was read
	closed  chan struct{}
	once    sync.Once

	ready []byte    // may be read; good until the scanner's next call
	until time.Time // when what waits goes; zero: nothing waits
	err   error     // after ready
}

// piece is what was read of a body. Its bytes are good until the next but one is received.
type piece struct {
	bytes []byte
	err   error
}

// receiveBody reads until the body ends, or nobody wants more.
func (h *heldBody) receiveBody() {
	buffers := [2][]byte{make([]byte, pieceSize), make([]byte, pieceSize)}
	for i := 0; ; i = 1 - i {
		n, err := h.from.Read(buffers[i])
		select {
		case h.pieces <- piece{buffers[i][:n], err}:
		case <-h.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (h *heldBody) Read(p []byte) (int, error) {
	if h.pieces == nil {
		h.pieces = make(chan piece)
		safego.Go(h.receiveBody)
	}
	for len(h.ready) == 0 && h.err == nil {
		h.nextPiece()
	}
	n := copy(p, h.ready)
	if h.ready = h.ready[n:]; len(h.ready) > 0 {
		return n, nil
	}
	return n, h.err
}

// nextPiece takes a piece, or lets go of what has waited for long enough.
func (h *heldBody) nextPiece() {
	var late <-chan time.Time
	if !h.until.IsZero() {
		timer := time.NewTimer(time.Until(h.until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case got := <-h.pieces:
		h.takePiece(got)
	case <-late:
		h.ready, h.until = h.scanner.Release(), time.Time{}
	case <-h.closed:
		h.err = http.ErrBodyReadAfterClose
	}
}

// takePiece has a piece looked through. All that goes out is on record.
func (h *heldBody) takePiece(got piece) {
	out, found := h.scanner.Write(got.bytes)
	if got.err != nil {
		rest, more := h.scanner.Close()
		out, found = append(slices.Clip(out), rest...), append(found, more...)
	}
	if h.err = h.look.tellFindings("body", found); h.err != nil {
		return
	}
	h.ready = out
	wait := h.scanner.Patience()
	switch {
	case got.err != nil:
		h.err = h.look.lookBehindBody(got.err)
	case wait == 0:
		h.until = time.Time{}
	case h.until.IsZero() || len(out) > 0: // what waits now has not waited before
		h.until = time.Now().Add(wait)
	}
}

// Close implements io.Closer.
func (h *heldBody) Close() error {
	h.once.Do(func() { close(h.closed) })
	return h.from.Close()
}
