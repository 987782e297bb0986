package door

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// callLine is a stream with nothing under way on it, or the one call that holds it.
type callLine struct {
	stream *yamux.Stream
	buf    *bytes.Buffer
}

// callWithoutReply makes a call that has no answer but that it was done.
func (c *Client) callWithoutReply(ctx context.Context, sandbox string, m method, ask any) error {
	_, err := askFor[nothing](ctx, c, sandbox, m, ask)
	return err
}

// askFor makes a call for a sandbox that is answered with an A. With an error there is no
// answer.
func askFor[A any](ctx context.Context, c *Client, sandbox string, m method, ask any) (A, error) {
	var answer, none A
	if err := c.callDaemon(ctx, sandbox, m, ask, &answer); err != nil {
		return none, err
	}
	return answer, nil
}

// callDaemon makes one call for a sandbox. A reply that is not whole and understood is an error.
func (c *Client) callDaemon(ctx context.Context, sandbox string, m method, ask, reply any) error {
	class := m.classOf()
	if class.outlastsClient() {
		var cancel context.CancelFunc
		ctx, cancel = lasting(ctx)
		defer cancel()
	}
	leave, err := c.shares.takeTurn(ctx, sandbox, class)
	if err != nil {
		return c.missed(ctx, sandbox, m, ask, err)
	}
	defer func() { leave() }()
	l, err := c.takeLine()
	if err != nil {
		return err
	}
	if err := encodeCall(l.buf, m, ask); err != nil {
		c.giveLine(l)
		return err
	}
	release, err := c.shares.makeRoom(ctx, sandbox, class, l.buf.Len())
	if err != nil {
		c.giveLine(l)
		return c.missed(ctx, sandbox, m, ask, err)
	}
	defer func() { release() }()
	st, body, err := l.exchange(ctx, class)
	if err != nil {
		if class == classWait {
			leave, release = l.keepTurn(leave, release)
		}
		return err
	}
	defer c.giveLine(l)
	if st != statusDone {
		return errorOf(st, body)
	}
	if err := decodeBody(body, reply); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the daemon's answer can't be read")
	}
	return nil
}

// missed is for a call that was not made, because there was no turn or no room for it as long as its asker waited,
// or because there never is. The error is cause. It is judged and put on record all the same, as one whose asker has
// gone, or a guest could choose by waiting or not what is on record.
func (c *Client) missed(ctx context.Context, sandbox string, m method, ask any, cause error) error {
	ctx, cancel := lasting(ctx)
	defer cancel()
	var err error
	switch class := m.classOf(); {
	case class == classWait:
		err = c.tellOf(ctx, sandbox, m, ask)
	case class != classStanding && errors.Is(cause, fairqueue.ErrCrowded): // of these there are as many as there may be
		_, err = c.Failed(ctx, Failure{
			Sandbox: sandbox, ResolvedBy: policy.ByCanonical, Rule: RuleCrowded, Reason: "more was asked for at a time than is judged: the rest was refused",
		})
	}
	if err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// tellOf makes a call for which nobody waits: what it asks is judged, and waits for nobody.
func (c *Client) tellOf(ctx context.Context, sandbox string, m method, ask any) error {
	leave, err := c.shares.takeTurn(ctx, sandbox, classRecord)
	if err != nil {
		return err
	}
	defer leave()
	l, err := c.takeLine()
	if err != nil {
		return err
	}
	defer l.abandon() // its half is closed
	if err := encodeCall(l.buf, m, ask); err != nil {
		return err
	}
	release, err := c.shares.makeRoom(ctx, sandbox, classRecord, l.buf.Len())
	if err != nil {
		return err
	}
	defer release()
	defer safego.When(ctx, l.abandon)()
	if err := l.sendCall(); err != nil {
		return err
	}
	if err := l.stream.Close(); err != nil { // this half: by that the daemon knows that nobody waits
		return err
	}
	_, _, err = l.receiveReply() // what it is answered is nobody's; whatever that is, it has been judged
	return err
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
func (l *callLine) abandon() {
	_ = l.stream.Close() // the call fails by itself
	_ = l.stream.SetDeadline(time.Unix(1, 0))
}

// keepTurn has a call whose asker has gone keep its turn and its room until the daemon is done with it, which judges it all
// the same: or a sandbox could have any number judged at a time by asking and going. The caller does not wait for that,
// and is given what gives nothing back.
func (l *callLine) keepTurn(leave, release func()) (nothing, neither func()) {
	safego.Go(func() {
		defer leave()
		defer release()
		l.awaitEnd()
	})
	return func() {}, func() {}
}

// awaitEnd waits, behind abandon, until the daemon is done with the call, or has had twice the time that it takes at most.
func (l *callLine) awaitEnd() {
	for until := time.Now().Add(2 * goneTime); time.Now().Before(until); {
		_ = l.stream.SetReadDeadline(until)
		if _, err := io.Copy(io.Discard, l.stream); !errors.Is(err, yamux.ErrTimeout) {
			return
		} // else abandon was not over yet
	}
}

// exchange sends what is in buf, and reads the reply into it. The line is of no more use if there
// is none. A call that may wait for a person is sent whether its asker is still there or not: it is
// judged then.
func (l *callLine) exchange(ctx context.Context, class class) (st status, body []byte, err error) {
	if class == classWait {
		err = l.sendCall()
	}
	stop := safego.When(ctx, l.abandon)
	if class != classWait {
		err = l.sendCall()
	}
	if err == nil {
		st, body, err = l.receiveReply()
	}
	if stop() && err == nil {
		return st, body, nil
	}
	l.abandon()
	if ctx.Err() != nil {
		return 0, nil, ctx.Err()
	}
	return 0, nil, fault.Wrap(fault.ErrUnavailable, errors.Join(ErrGone, err), "the daemon does not answer")
}

// sendCall sends what is in buf. Like receive, it sets no deadlines: abandon's must stand.
func (l *callLine) sendCall() error {
	_, err := l.stream.Write(l.buf.Bytes())
	l.buf = emptied(l.buf) // a person may take days to answer a large question
	return err
}

// receiveReply reads the reply into buf.
func (l *callLine) receiveReply() (status, []byte, error) {
	m := incoming{conn: l.stream, limit: func(byte) int { return maxMessage }}
	kind, n, err := m.readHead()
	if err != nil {
		return 0, nil, err
	}
	if err := m.readBody(l.buf, n); err != nil {
		return 0, nil, err
	}
	return status(kind), l.buf.Bytes(), nil
}

// takeLine takes an idle stream or opens one.
func (c *Client) takeLine() (*callLine, error) {
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
	return &callLine{stream: stream, buf: new(bytes.Buffer)}, nil
}

// giveLine puts a stream back.
func (c *Client) giveLine(l *callLine) {
	l.buf = emptied(l.buf)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) >= maxIdle {
		_ = l.stream.Close() // it is not needed any more
		return
	}
	c.idle = append(c.idle, l)
}
