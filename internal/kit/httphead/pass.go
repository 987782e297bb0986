package httphead

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Bounds of what is read of a body that nobody wants any more, so that its connection can bring another
// request.
const (
	mostUnwanted = 256 << 10   // bytes, as many as net/http reads of such a one
	unwantedTime = time.Second // for all of them to come
)

// Passing is a request whose body goes on to another server. That one may answer before it has read all of the body.
// Over HTTP/1 net/http would then take the rest of it for itself as soon as the answer begins, while the proxy still
// reads it; to that the body looks broken off, and it gives up the connection with the answer that comes on it. So
// this is the one way to answer such a request.
type Passing struct {
	came *http.Request
	body io.Reader    // as the server gave it
	left atomic.Int64 // bytes of it; below 0: nobody knows
}

// NewPassing makes one of a request as the server gave it to the handler. The request that it returns is the one to
// go on with: what is read of its body is counted.
func NewPassing(came *http.Request) (*Passing, *http.Request) {
	p := &Passing{came: came, body: came.Body}
	p.left.Store(came.ContentLength)
	if came.ProtoMajor != 1 || came.Body == nil || came.Body == http.NoBody {
		p.left.Store(0)
		return p, came
	}
	r := came.WithContext(came.Context())
	r.Body = &leftBody{came.Body, p}
	return p, r
}

// leftBody counts what is left of a body.
type leftBody struct {
	io.ReadCloser
	of *Passing
}

// Read implements io.Reader.
func (l *leftBody) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	switch {
	case errors.Is(err, io.EOF):
		l.of.left.Store(0)
	case l.of.left.Load() > 0:
		l.of.left.Add(-int64(n))
	}
	return n, err
}

// Answer has a proxy write the answer, and returns when the client has its head, or is gone. The connection does not
// outlive a proxy that panics, also where somebody recovers from that: nobody has looked for the body's end then.
func (p *Passing) Answer(out *Answer, proxy func(w http.ResponseWriter)) {
	server := p.bothWays(out.ResponseWriter)
	if server == nil {
		proxy(out)
		out.Settle()
		return
	}
	out.passed = p
	returned := false
	defer func() {
		switch {
		case out.hijacked:
		case returned:
			leaveBody(server, p.body)
		default:
			cutBody(server)
		}
	}()
	proxy(out)
	out.Settle()
	returned = true
}

// foretell has a client told that its connection ends with the answer, if there may be more of the body left then than
// anybody reads.
func (p *Passing) foretell(head http.Header) {
	if left := p.left.Load(); left < 0 || left >= mostUnwanted {
		head.Set("Connection", "close")
	}
}

// bothWays has a server of HTTP/1 leave the request's body to the handler until that returns; nil: there is nothing to
// leave.
func (p *Passing) bothWays(w http.ResponseWriter) http.ResponseWriter {
	if p.came.ProtoMajor != 1 || p.body == nil || p.body == http.NoBody || p.awaitsLeave() {
		return nil
	}
	for {
		if server, ok := w.(interface{ EnableFullDuplex() error }); ok {
			if server.EnableFullDuplex() != nil {
				return nil
			}
			return w
		}
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil // a writer of tests
		}
		w = outer.Unwrap()
	}
}

// awaitsLeave tells whether a client awaits leave for its body. net/http tells it by the answer's head whether it may say
// more here, and gives leave as soon as somebody reads. It has any other expectation refused before a handler is told of
// the request, and of HTTP/1.0 it knows none; so the field's value is its to read alone.
func (p *Passing) awaitsLeave() bool {
	return p.came.ProtoAtLeast(1, 1) && p.came.Header.Get("Expect") != ""
}

// Unsent is for who answers by itself because the other server did not: nobody reads the body any more, and its
// client, which may say all before it listens, shall keep its connection. w is the Answer, or anything else.
func Unsent(w http.ResponseWriter) {
	a, ok := w.(*Answer)
	if !ok || a.passed == nil || a.begun {
		return
	}
	if readRest(a.ResponseWriter, a.passed.body) {
		a.passed.left.Store(0)
	} else {
		a.passed.left.Store(-1)
	}
}

// readRest reads what is left of a body, within bounds, and tells whether that was all.
func readRest(w http.ResponseWriter, body io.Reader) bool {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(unwantedTime)) // it has one, as the server's own
	_, err := io.CopyN(io.Discard, body, mostUnwanted)
	if errors.Is(err, io.EOF) {
		_ = control.SetReadDeadline(time.Time{}) // as above
		return true
	}
	return false
}

// leaveBody reads what is left of a body, before the handler returns: at an end that the server itself comes upon
// later it begins to read ahead, and panics when it reads the next request. If the end does not come soon, the
// connection ends with the answer, since the rest would be read as a request.
func leaveBody(server http.ResponseWriter, body io.Reader) {
	if !readRest(server, body) {
		cutBody(server)
	}
}

// cutBody has a server of HTTP/1 read no more of a body, and end the connection.
func cutBody(server http.ResponseWriter) {
	endConnection(server)
	_ = http.NewResponseController(server).SetReadDeadline(time.Unix(1, 0)) // else the server waits for more of the body
}

// endConnection has a server of HTTP/1 end a connection behind the answer that is being given. The head of that is
// out, and a body that is too large is the one reason for which net/http lets a handler do so then.
func endConnection(server http.ResponseWriter) {
	_, _ = http.MaxBytesReader(server, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1)) // it is too large
}
