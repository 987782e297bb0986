package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// How long a request's body may take: a while, and then some for each so many bytes.
// Without that a client could hold a connection, of which there are only so many, for
// as long as it likes.
const (
	bodyTimeout = 30 * time.Second
	bodyRate    = 16 << 10 // bytes a second
)

// deadlines is the part of a http.ResponseController that a body needs.
type deadlines interface{ SetReadDeadline(at time.Time) error }

// errCut: nobody wants the rest of the body.
var errCut = errors.New("the request was answered before all of its body came")

// paced is a body whose client must keep up. Its deadline is there only while the
// body is read: what watches the connection afterwards waits for as long as the
// request takes.
type paced struct {
	io.ReadCloser
	began time.Time // of the first read
	read  int64

	mu      sync.Mutex // guards what follows, and the deadline's order
	control deadlines
	over    bool // cut
}

// paceBody gives a request's body its deadlines.
func paceBody(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &paced{ReadCloser: r.Body, control: http.NewResponseController(w)}
	}
}

// Read fails with os.ErrDeadlineExceeded when the client is too slow.
func (p *paced) Read(b []byte) (int, error) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	if !p.setDeadline(p.began.Add(bodyTimeout + time.Duration(p.read/bodyRate)*time.Second)) {
		return 0, errCut
	}
	n, err := p.ReadCloser.Read(b)
	p.read += int64(n)
	if err != nil && !p.setDeadline(time.Time{}) {
		err = errCut
	}
	return n, err
}

// setDeadline sets the deadline, unless the body is cut.
func (p *paced) setDeadline(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		_ = p.control.SetReadDeadline(at) // a writer of tests has no connection, and no deadlines
	}
	return !p.over
}

// cutBody ends a read that another goroutine is in, and all that would follow: whoever
// reads a body elsewhere must have returned before the handler does.
func (p *paced) cutBody() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	_ = p.control.SetReadDeadline(time.Unix(1, 0)) // as above
}

// Close ends the deadlines of a body that was not read to its end, too.
func (p *paced) Close() error {
	if !p.began.IsZero() {
		p.setDeadline(time.Time{})
	}
	return p.ReadCloser.Close()
}
