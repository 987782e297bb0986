package exchange

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
)

// Bounds of what is kept of a WebSocket's frames (RFC 6455, section 5).
const (
	maxControl = 125   // bytes of a control frame
	maxHead    = 14    // bytes of a frame's head
	maxWaiting = 4_000 // heads that wait for what stands before them
)

// errFrames is what ends a WebSocket that can't be looked through.
var errFrames = errors.New("the frames of a WebSocket can't be read, so nobody can see whether a credential is in them")

// messages is the connection of a WebSocket: no secret comes in by its messages, and no
// placeholder leaves by them.
func (e *Exchange) messages(a *http.Response, both io.ReadWriteCloser) io.ReadWriteCloser {
	return &websocket{
		ReadWriteCloser: both, arrivals: arrivals{from: both, patience: gotOfAnswer(a).patience()}, answer: a, exchange: e,
		in: frames{scan: e.scanOf(nil)}, out: frames{scan: scan{needles: e.strays, known: true}, masked: true},
	}
}

type websocket struct {
	io.ReadWriteCloser
	arrivals arrivals
	answer   *http.Response
	exchange *Exchange
	in       frames // one goroutine reads
	ready    []byte
	err      error
	out      frames // another writes
}

// Read implements io.Reader.
func (w *websocket) Read(p []byte) (int, error) {
	for len(w.ready) == 0 && w.err == nil && len(p) > 0 {
		b, late, err := w.arrivals.nextArrival(p, &w.in.scan.tail)
		if late {
			w.handOn()
			continue
		}
		if w.err = w.exchange.hearOf(w.answer, len(b), err); w.err != nil {
			return 0, w.err
		}
		w.takeRead(b, err)
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	if len(w.ready) > 0 {
		return n, nil
	}
	return n, w.err
}

// takeRead takes what was read, with why no more comes.
func (w *websocket) takeRead(b []byte, err error) {
	var wrong error
	w.ready, _, wrong = w.in.takeBytes(b, answerEnd(w.answer, err) == wholeEnd)
	if w.err = err; wrong != nil {
		w.err = wrong
	}
}

// handOn hands on what was held for long enough.
func (w *websocket) handOn() {
	due := w.in.scan.tail.dueBytes()
	if w.err = w.exchange.refuseStopped(w.answer, &w.in.scan, due); w.err == nil {
		w.ready = w.in.releaseBytes(due)
	}
}

// Write implements io.Writer.
func (w *websocket) Write(p []byte) (int, error) {
	out, of, err := w.out.takeBytes(p, false)
	if of != "" && w.answer.Request != nil {
		r := w.answer.Request
		said := gotOfAnswer(w.answer).said
		if said == (Request{}) { // it got nothing, so what it asked for is no secret
			said = requestOf(r)
		}
		err = &Refused{Sentence: w.exchange.keeper.Leaked(r.Context(), said, Leak{Secret: of, Where: "message"}), Leak: true}
	}
	if err != nil {
		return 0, err
	}
	if _, err := w.ReadWriteCloser.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// CloseWrite tells the host that the client says no more.
func (w *websocket) CloseWrite() error {
	if half, ok := w.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return w.Close()
}

// frames look through the messages that frames carry one way. A message is one text however
// it lies in frames; control frames, which may stand between them, are each their own.
type frames struct {
	scan   scan
	masked bool // a client's are, each with a key of its own

	head    []byte // of the frame that is being read, as far as it has come
	begun   bool   // its head is whole
	final   bool   // it is the last of its message
	control []byte // it and what has come of it; nil: it carries a message
	key     []byte // nil: there is none
	place   int    // in the frame, by which its key turns
	left    uint64 // bytes of it that are to come

	raw     []byte // what the scan has not given yet, as it came
	waiting []head // of frames behind what the scan holds
	out     []byte
}

// head stands behind so many bytes of raw.
type head struct {
	behind int
	bytes  []byte
}

// takeBytes takes what has come. It gives what may go on, and what a needle in it is of. The
// result is the caller's until the next call.
func (f *frames) takeBytes(b []byte, last bool) (out []byte, of string, err error) {
	f.out = f.out[:0]
	for len(b) > 0 || f.begun && f.left == 0 {
		if !f.begun {
			n, err := f.beginFrame(b)
			if b = b[n:]; err != nil {
				return f.out, of, err
			}
			if !f.begun {
				break
			}
		}
		part := b[:min(uint64(len(b)), f.left)]
		b, f.left = b[len(part):], f.left-uint64(len(part))
		hit := f.carryPart(part)
		if f.left == 0 {
			f.begun, f.head = false, nil
		}
		if hit != "" {
			of = hit
		}
	}
	if last {
		f.giveBytes(f.scan.takeMore(nil, true))
		if f.out = append(f.out, f.control...); !f.begun { // what was cut off
			f.out = append(f.out, f.head...)
		}
	}
	return f.out, of, nil
}

// beginFrame reads a frame's head.
func (f *frames) beginFrame(b []byte) (n int, err error) {
	for n < len(b) && !f.begun {
		f.head = append(f.head, b[n])
		n++
		size := f.headSize()
		if size < 0 || len(f.head) > maxHead {
			return n, errFrames
		}
		f.begun = len(f.head) == size
	}
	if !f.begun {
		return n, nil
	}
	f.final, f.place, f.key, f.control = f.head[0]&0x80 != 0, 0, nil, nil
	length := f.head[2:]
	switch f.left = uint64(f.head[1] & 0x7f); f.left {
	case 126:
		f.left = uint64(binary.BigEndian.Uint16(length))
	case 127:
		f.left = binary.BigEndian.Uint64(length)
	}
	if f.masked {
		f.key = append([]byte(nil), f.head[len(f.head)-4:]...)
	}
	if f.head[0]&0x08 != 0 {
		if f.left > maxControl || !f.final {
			return n, errFrames
		}
		f.control = append([]byte(nil), f.head...)
		return n, nil
	}
	return n, f.waitBehind(f.head)
}

// headSize is how long the head is, as far as that is known; below 0: it is none that
// can be read, since an extension is used or the wrong side masks.
func (f *frames) headSize() int {
	if f.head[0]&0x70 != 0 {
		return -1
	}
	if len(f.head) < 2 {
		return 2
	}
	if masked := f.head[1]&0x80 != 0; masked != f.masked {
		return -1
	}
	size := 2
	switch f.head[1] & 0x7f {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if f.masked {
		size += 4
	}
	return size
}

// waitBehind has a frame, or the head of one, stand behind what the scan holds.
func (f *frames) waitBehind(b []byte) error {
	if len(f.raw) == 0 {
		f.out = append(f.out, b...)
		return nil
	}
	if len(f.waiting) == maxWaiting {
		return errFrames
	}
	f.waiting = append(f.waiting, head{len(f.raw), append([]byte(nil), b...)})
	return nil
}

// carryPart looks through what a frame carries.
func (f *frames) carryPart(part []byte) (of string) {
	plain := append([]byte(nil), part...)
	for i := range plain {
		if f.key != nil {
			plain[i] ^= f.key[f.place%len(f.key)]
		}
		f.place++
	}
	if f.control != nil {
		return f.carryControl(part)
	}
	f.raw = append(f.raw, part...)
	return f.giveBytes(f.scan.takeMore(plain, f.final && f.left == 0))
}

// carryControl looks through a control frame once it is whole.
func (f *frames) carryControl(part []byte) (of string) {
	f.control = append(f.control, part...)
	if f.left > 0 {
		return ""
	}
	said := f.control[len(f.head):]
	plain := append([]byte(nil), said...)
	for i := range plain {
		if f.key != nil {
			plain[i] ^= f.key[i%len(f.key)]
		}
	}
	f.scan.renewNeedles()
	if of = f.scan.needles.findInText(string(plain)); of != "" && f.key == nil {
		copy(said, f.scan.needles.masked(string(plain)))
	}
	if f.waitBehind(f.control) != nil {
		f.out = append(f.out, f.control...) // early, which nobody can tell of a control frame
	}
	f.control = nil
	return of
}

// releaseBytes gives the first bytes of what is held, with the heads between them. The result is the caller's until the
// next call.
func (f *frames) releaseBytes(n int) []byte {
	f.out = f.out[:0]
	f.giveBytes(f.scan.releaseBytes(n), "")
	return f.out
}

// giveBytes gives what the scan lets go, with the heads that wait behind it.
func (f *frames) giveBytes(plain []byte, of string) string {
	given := plain
	if f.masked {
		given = f.raw[:len(plain)]
	}
	done := 0
	for len(f.waiting) > 0 && f.waiting[0].behind <= len(given) {
		next := f.waiting[0]
		f.out = append(append(f.out, given[done:next.behind]...), next.bytes...)
		done, f.waiting = next.behind, f.waiting[1:]
	}
	f.out = append(f.out, given[done:]...)
	f.raw = append(f.raw[:0], f.raw[len(given):]...)
	for i := range f.waiting {
		f.waiting[i].behind -= len(given)
	}
	return of
}
