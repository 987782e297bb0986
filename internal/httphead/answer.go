package httphead

import (
	"errors"
	"io"
	"net/http"
)

// Answer writes an answer that is passed on. A server keeps its fields until the client has taken
// them, also when its handler has returned, and then nobody counts them: so a handler calls Settle
// at its end, and returns when they are gone.
type Answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) {
	a.begun = a.begun || status >= http.StatusOK
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (a *Answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Settle returns when the client has the head, or is gone. Of a connection that was taken over
// there is none.
func (a *Answer) Settle() {
	if a.begun {
		_ = http.NewResponseController(a.ResponseWriter).Flush() // who is gone needs it no more
	}
}

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
