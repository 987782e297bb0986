package httpapi

import (
	"io"
	"net/http"
	"time"
)

// How long a request's body may take: a while, and then some for each so many bytes.
// Without that a client could hold a connection, of which there are only so many, for
// as long as it likes.
const (
	bodyPatience = 30 * time.Second
	bodyRate     = 16 << 10 // bytes a second
)

// deadlines is the part of a http.ResponseController that a body needs.
type deadlines interface{ SetReadDeadline(at time.Time) error }

// paced is a body whose client must keep up. Its deadline is there only while the
// body is read: what watches the connection afterwards waits for as long as the
// request takes.
type paced struct {
	io.ReadCloser
	control deadlines
	began   time.Time // of the first read
	read    int64
}

// pace gives a request's body its deadlines.
func pace(w http.ResponseWriter, r *http.Request) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &paced{ReadCloser: r.Body, control: http.NewResponseController(w)}
	}
}

// Read fails with os.ErrDeadlineExceeded when the client is too slow.
func (p *paced) Read(b []byte) (int, error) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	// A writer of tests has no connection, and no deadlines.
	_ = p.control.SetReadDeadline(p.began.Add(bodyPatience + time.Duration(p.read/bodyRate)*time.Second))
	n, err := p.ReadCloser.Read(b)
	p.read += int64(n)
	if err != nil {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Close ends the deadlines of a body that was not read to its end, too.
func (p *paced) Close() error {
	if !p.began.IsZero() {
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return p.ReadCloser.Close()
}
