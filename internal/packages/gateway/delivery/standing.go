package delivery

import (
	"errors"
	"io"
	"net/http"
)

// So much of a file that a person approved, or that the policy allows, is sent
// between two questions whether it may still be had: so much can still go out
// after a denial.
const (
	approvedBytes = 256 << 10
	allowedBytes  = 1 << 20
)

var errNoLonger = errors.New("the file may no longer be had")

// standing reads a file, as long as it may be had.
type standing struct {
	io.ReadSeeker
	check func() bool
	step  int // bytes between two questions
	left  int // of them until the next
	ended bool
}

// Read implements io.Reader.
func (s *standing) Read(p []byte) (int, error) {
	if s.left <= 0 && !s.ended {
		s.ended = !s.check()
		s.left = s.step
	}
	if s.ended {
		return 0, errNoLonger
	}
	n, err := s.ReadSeeker.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// counted counts the body's bytes.
type counted struct {
	http.ResponseWriter
	sent int64
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent += int64(n)
	return n, err
}

// ReadFrom keeps the server's large copies; the count is the same.
func (c *counted) ReadFrom(r io.Reader) (int64, error) {
	to, ok := c.ResponseWriter.(io.ReaderFrom)
	if !ok {
		return 0, errors.New("the server's answer takes no reader")
	}
	n, err := to.ReadFrom(r)
	c.sent += n
	return n, err
}

// unsent is an answer that is not sent.
type unsent struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (u *unsent) Header() http.Header { return u.header }

// WriteHeader implements http.ResponseWriter.
func (u *unsent) WriteHeader(status int) { u.status = status }

// Write implements http.ResponseWriter.
func (u *unsent) Write(p []byte) (int, error) { return len(p), nil }
