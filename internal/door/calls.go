package door

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// line is a stream with nothing under way on it, or the one call that holds it.
type line struct {
	stream *yamux.Stream
	buf    *bytes.Buffer
}

// tell makes a call that has no answer but that it was done.
func (c *Client) tell(ctx context.Context, sandbox string, m method, ask any) error {
	_, err := askFor[nothing](ctx, c, sandbox, m, ask)
	return err
}

// askFor makes a call for a sandbox that is answered with an A. With an error there is no
// answer.
func askFor[A any](ctx context.Context, c *Client, sandbox string, m method, ask any) (A, error) {
	var answer, none A
	if err := c.call(ctx, sandbox, m, ask, &answer); err != nil {
		return none, err
	}
	return answer, nil
}

// call makes one call for a sandbox. A reply that is not whole and understood is an error.
func (c *Client) call(ctx context.Context, sandbox string, m method, ask, reply any) error {
	if m.class().lasts() {
		var cancel context.CancelFunc
		ctx, cancel = lasting(ctx)
		defer cancel()
	}
	leave, err := c.shares.takeTurn(ctx, sandbox, m.class())
	if err != nil {
		return err
	}
	defer leave()
	l, err := c.take()
	if err != nil {
		return err
	}
	if err := encodeCall(l.buf, m, ask); err != nil {
		c.give(l)
		return err
	}
	release, err := c.shares.makeRoom(ctx, sandbox, m.class(), l.buf.Len())
	if err != nil {
		c.give(l)
		return err
	}
	defer release()
	stop := errand.When(ctx, l.abandon)
	st, body, err := l.exchange()
	if !stop() || err != nil {
		l.abandon()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.Wrap(fault.ErrUnavailable, errors.Join(ErrGone, err), "the daemon does not answer")
	}
	defer c.give(l)
	if st != statusDone {
		return errorOf(st, body)
	}
	if err := decodeBody(body, reply); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the daemon's answer can't be read")
	}
	return nil
}

// lasting is ctx without its cancellation, and with its deadline, which is none of a guest's.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	until, bounded := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if bounded {
		return context.WithDeadline(ctx, until)
	}
	return ctx, func() {}
}

// abandon ends the call under way: the end of the stream tells the daemon that
// nobody waits any more, and the deadline tells this side.
func (l *line) abandon() {
	_ = l.stream.Close() // the call fails by itself
	_ = l.stream.SetDeadline(time.Unix(1, 0))
}

// exchange sends what is in buf and reads the reply into it. It sets no
// deadlines: abandon's must stand.
func (l *line) exchange() (status, []byte, error) {
	if _, err := l.stream.Write(l.buf.Bytes()); err != nil {
		return 0, nil, err
	}
	l.buf = emptied(l.buf) // a person may take days to answer a large question
	m := incoming{conn: l.stream, limit: func(byte) int { return maxMessage }}
	kind, n, err := m.head()
	if err != nil {
		return 0, nil, err
	}
	if err := m.body(l.buf, n); err != nil {
		return 0, nil, err
	}
	return status(kind), l.buf.Bytes(), nil
}

// take takes an idle stream or opens one.
func (c *Client) take() (*line, error) {
	if c.broken != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, c.broken, "there is no connection to the daemon")
	}
	c.mu.Lock()
	if n := len(c.idle); n > 0 && !c.session.IsClosed() {
		l := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return l, nil
	}
	c.mu.Unlock()
	stream, err := c.session.OpenStream()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the connection to the daemon is lost")
	}
	return &line{stream: stream, buf: new(bytes.Buffer)}, nil
}

// give puts a stream back.
func (c *Client) give(l *line) {
	l.buf = emptied(l.buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) >= maxIdle {
		_ = l.stream.Close() // it is not needed any more
		return
	}
	c.idle = append(c.idle, l)
}
