package httphead

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Untaken is how long a client may take nothing of what it is sent, before that ends: it may be gone
// without a word, and all that stands behind its answer waits for it.
const Untaken = 15 * time.Minute

// Answer writes an answer that is passed on. A server keeps its fields until the client has taken
// them, also when its handler has returned, and then nobody counts them: so a handler calls Settle
// at its end, and returns when they are gone.
type Answer struct {
	http.ResponseWriter
	// Within is how long the client may take nothing of what it is sent before the answer is broken
	// off; over HTTP/2 that is this one stream. 0: as long as it likes.
	Within time.Duration

	passed   *Passing // nil: it is none of a server's that is passed on
	begun    bool
	hijacked bool
	late     *time.Timer // runs while something is written; nil: nothing was

	mu      sync.Mutex // guards writing
	writing bool
}

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) {
	a.begun = a.begun || status >= http.StatusOK
	if status >= http.StatusOK && a.passed != nil {
		a.passed.foretell(a.Header())
	}
	_ = a.inTime(func() error { // over HTTP/2 it waits when it is an interim one
		a.ResponseWriter.WriteHeader(status)
		return nil
	})
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(b []byte) (n int, err error) {
	a.begun = true
	err = a.inTime(func() (err error) {
		n, err = a.ResponseWriter.Write(b)
		return err
	})
	return n, err
}

// FlushError serves http.ResponseController.
func (a *Answer) FlushError() error {
	a.begun = true
	return a.inTime(http.NewResponseController(a.ResponseWriter).Flush)
}

// Flush implements http.Flusher.
func (a *Answer) Flush() { _ = a.FlushError() } // who asks this way does not want to know

// Hijack is for http.ResponseController. Bytes written on the connection have to be taken in time as
// well.
func (a *Answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	a.hijacked = err == nil
	if err != nil || a.Within <= 0 {
		return conn, buffered, err
	}
	return &Taken{Conn: conn, Within: a.Within}, buffered, nil
}

// inTime does what waits for the client, and breaks the answer off if that takes too long.
func (a *Answer) inTime(write func() error) error {
	if a.Within <= 0 {
		return write()
	}
	a.writeHead(true)
	defer a.writeHead(false)
	if a.late == nil {
		a.late = safego.After(a.Within, a.breakOff)
	} else {
		a.late.Reset(a.Within)
	}
	defer a.late.Stop()
	return write()
}

func (a *Answer) writeHead(now bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writing = now
}

// breakOff ends what is being written.
func (a *Answer) breakOff() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writing { // else it was taken in the last moment, and there may be no answer any more
		_ = http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // a writer that has none waits for nobody
	}
}

// Unwrap is for http.ResponseController.
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Settle returns when the client has the head, or is gone. Of a connection that was taken over
// there is none.
func (a *Answer) Settle() {
	if a.begun {
		_ = a.FlushError() // who is gone needs it no more
	}
}

// Taken is a connection whose client must take each piece of what is written on it in some time.
type Taken struct {
	net.Conn
	Within time.Duration
}

// Write implements net.Conn.
func (t *Taken) Write(b []byte) (int, error) {
	if err := t.SetWriteDeadline(time.Now().Add(t.Within)); err != nil {
		return 0, err
	}
	return t.Conn.Write(b)
}

// NetConn is the connection below, as tls.Conn has it.
func (t *Taken) NetConn() net.Conn { return t.Conn }

// CloseWrite ends one half.
func (t *Taken) CloseWrite() error { return CloseWrite(t.Conn) }

// mostBehind is how much may come behind a body over HTTP/2, in bytes as the protocol counts them.
// The server that passes it on keeps it when its handler has returned already.
const (
	mostBehind  = 8 << 10
	framedField = 32 // of each field, beside its text (RFC 9113, section 10.5.1)
)

var errTrailed = errors.New("the fields behind the body of an answer are longer than 8 KiB")

// trailed is a body behind which fields may come, of which there is an end.
type trailed struct {
	io.ReadCloser
	answer *http.Response
}

// Read implements io.Reader.
func (t *trailed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	size := 0
	for name, values := range t.answer.Trailer {
		for _, value := range values {
			size += len(name) + len(value) + framedField
		}
	}
	if size > mostBehind {
		clear(t.answer.Trailer)
		return n, errTrailed
	}
	return n, err
}
