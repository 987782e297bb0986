package safego

import (
	"context"
	"errors"
	"io"
	"net"
)

// Libraries call us back in goroutines that they started, which no recover of ours stands
// around: HTTP transports dial and read bodies so. These functions wrap what such a library is handed.

// DialFunc connects to an address, as http.Transport has it done.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// ShieldDial makes ErrLost of a panic in a dial function.
func ShieldDial(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = Try(func() (failure error) {
			conn, failure = dial(ctx, network, address)
			return failure
		})
		return conn, err
	}
}

// ShieldBody makes ErrLost of a panic in reading, writing or closing a body. After one it is
// read and written no more: nobody knows what state it is in. A body that can be written to,
// as that of a connection which was upgraded, still can.
func ShieldBody(body io.ReadCloser) io.ReadCloser {
	shield := &bodyShield{body: body}
	if both, ok := body.(io.ReadWriteCloser); ok {
		return &upgradedShield{bodyShield: shield, writer: both, write: &bodyShield{body: body}}
	}
	return shield
}

// bodyShield is used by one goroutine at a time in each direction, as what it wraps is.
type bodyShield struct {
	body io.ReadCloser
	lost bool
}

// Read implements io.Reader.
func (s *bodyShield) Read(p []byte) (n int, err error) {
	return s.doOnce(func() (int, error) { return s.body.Read(p) })
}

// Close implements io.Closer.
func (s *bodyShield) Close() error { return Try(s.body.Close) }

// doOnce does what gives a count of bytes, unless that panicked before.
func (s *bodyShield) doOnce(do func() (int, error)) (n int, err error) {
	if s.lost {
		return 0, ErrLost
	}
	err = Try(func() (failure error) {
		n, failure = do()
		return failure
	})
	if s.lost = errors.Is(err, ErrLost); s.lost {
		n = 0
	}
	return n, err
}

type upgradedShield struct {
	*bodyShield

	writer io.Writer
	write  *bodyShield // the other direction's, which another goroutine uses
}

// Write implements io.Writer.
func (s *upgradedShield) Write(p []byte) (int, error) {
	return s.write.doOnce(func() (int, error) { return s.writer.Write(p) })
}
