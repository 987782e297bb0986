package backend

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// ReceiveBuffer is how many bytes of a request's body a server of HTTP/2 keeps at most until its handler reads them.
// The daemon's servers grant their clients no more; net/http's own bound is 1 MiB.
const ReceiveBuffer = 64 << 10

// Buffered has the request of ctx take room for what the server keeps of its body, until the body is read to its end or the request
// is over: its handler may do something else for as long as the client likes, and never read any of it. The server keeps it when
// the handler has returned, too, until the client has taken the answer. Over HTTP/1 what nobody reads stays with the
// kernel. fault.ErrExhausted: there is no room.
func Buffered(ctx context.Context, r *http.Request) error {
	n := int64(ReceiveBuffer)
	switch {
	case r.ProtoMajor < 2 || r.ContentLength == 0:
		return nil
	case r.ContentLength > 0:
		n = min(n, r.ContentLength)
	}
	s, ok := ctx.Value(roomKey{}).(*share)
	if !ok {
		return nil
	}
	if err := s.buffer(n); err != nil {
		return err
	}
	r.Body = &untilRead{r.Body, s}
	return nil
}

// untilRead is a body for which its request has room as long as the server may have some of it.
type untilRead struct {
	io.ReadCloser
	of *share
}

// Read implements io.Reader.
func (u *untilRead) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		u.of.drained()
	}
	return n, err
}
