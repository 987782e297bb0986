package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// ErrNoDaemon means that nothing listens on the socket, or at the address.
var ErrNoDaemon = errors.New("no daemon is listening")

// ErrLost means that the connection ended before the command did. Attach again at the
// attachment's offset.
var ErrLost = errors.New("the connection to the daemon was lost")

// maxProblem bounds what is read of an answer that is not a success.
const maxProblem = 64 << 10

// Error is an answer of the daemon that is not a success.
type Error struct {
	Problem api.Problem // Status is always set
}

// Error returns the daemon's sentence.
func (e *Error) Error() string {
	switch {
	case e.Problem.Detail != "":
		return e.Problem.Detail
	case e.Problem.Title != "":
		return e.Problem.Title
	}
	return http.StatusText(e.Problem.Status)
}

// RetryAfter returns when the same may succeed, of an answer 429 or 503; 0 if it does not say.
func (e *Error) RetryAfter() time.Duration {
	return time.Duration(e.Problem.RetrySeconds) * time.Second
}

// StatusOf returns the status of the *Error in err, or 0.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problem.Status
	}
	return 0
}

// problem reads an answer that is not a success; what is no problem document
// is told by its status.
func problem(resp *http.Response) error {
	p := api.Problem{}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // a part of it is better than nothing
	if json.Unmarshal(data, &p) != nil {
		p = api.Problem{}
	}
	p.Status = resp.StatusCode
	return &Error{Problem: p}
}

// plainTransport takes net/http's "Get "http://daemon/..."" off an error, since
// the URL means nothing to a person, and tells a daemon that went away.
func plainTransport(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	for _, gone := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
	}
	return err
}
