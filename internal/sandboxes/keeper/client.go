package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Client talks to a keeper, one connection a request. It holds none between,
// and is safe for concurrent use. Errors are faults: ErrUnavailable when no
// keeper answers, ErrNotFound for an unknown sandbox or command.
type Client struct {
	socket string

	mu  sync.Mutex // guards what follows; never held over a request
	met meeting
}

// Dial names the keeper's socket; nothing is connected yet.
func Dial(socket string) *Client { return &Client{socket: socket} }

// link is one connection. Its context ends it.
type link struct {
	*channel.Conn
	client *Client
	ctx    context.Context //nolint:containedctx // a link lives within one call
	stop   func() bool
}

func (c *Client) connectKeeper(ctx context.Context) (*link, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the keeper does not answer at %s", c.socket)
	}
	stop := safego.When(ctx, func() { _ = raw.Close() })
	return &link{Conn: channel.NewConn(raw), client: c, ctx: ctx, stop: stop}, nil
}

func (l *link) closeLink() {
	l.stop()
	_ = l.Raw().Close()
}

// linkError says why a link broke: its context, or a keeper that went away.
func (l *link) linkError(err error) error {
	if ctxErr := l.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if errors.Is(err, fault.ErrInvalid) {
		return &unanswered{fmt.Errorf("keeper: %w", err)}
	}
	return &unanswered{fault.Wrap(fault.ErrUnavailable, err, "the keeper broke the connection off")}
}

// unanswered is the error of a request that was sent, and whose answer did not come, or can't be read.
type unanswered struct{ error }

func (u *unanswered) Unwrap() error { return u.error }

// Unanswered tells of an error of a Client whether it says nothing of what was asked: the keeper may have
// done it, as it does what it was asked for whoever still waits.
func Unanswered(err error) bool {
	_, is := errors.AsType[*unanswered](err)
	return is || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// sendRequest writes a request, and the guest's frame if there is one. A keeper that
// refuses at once may have closed before all was written: its response tells
// why, so a broken write is left for receive to report.
//
// A request that this keeper would not know is not sent.
func (l *link) sendRequest(req Request, guest any) error {
	if len(req.neededFeatures()) > 0 {
		met, err := l.client.meetKeeper(l.ctx, l)
		if err == nil {
			err = met.checkRequest(&req)
		}
		if err != nil {
			return err
		}
	}
	err := l.WriteJSON(channel.FrameOpen, req)
	if err == nil && guest != nil {
		err = l.WriteJSON(channel.FrameOpen, guest)
	}
	if tooLong, ok := errors.AsType[*channel.FrameError](err); ok {
		return fault.Wrap(fault.ErrInvalid, tooLong, "the request is too long for the keeper")
	}
	if _, ok := errors.AsType[net.Error](err); err != nil && !ok {
		return err
	}
	return nil
}

func (l *link) receiveResponse() (Response, error) {
	var r Response
	if err := l.ReadJSON(channel.FrameReply, &r); err != nil {
		return r, l.linkError(err)
	}
	return r, r.responseError()
}

// beginRequest sends a request on a connection of its own, with the guest's frame if there is
// one, and has what comes back read. Of an error the connection is closed.
func (c *Client) beginRequest(ctx context.Context, req Request, guest any, read func(*link) error) (*link, error) {
	l, err := c.connectKeeper(ctx)
	if err != nil {
		return nil, err
	}
	err = l.sendRequest(req, guest)
	if err == nil {
		err = read(l)
	}
	if err != nil {
		l.closeLink()
		return nil, err
	}
	return l, nil
}

// beginAndKeep begins a request, with a connection that is the caller's afterwards: ctx bounds only the
// asking.
func (c *Client) beginAndKeep(ctx context.Context, req Request, guest any, read func(*link) error) (net.Conn, error) {
	l, err := c.beginRequest(ctx, req, guest, read)
	if err != nil {
		return nil, err
	}
	if !l.stop() {
		_ = l.Raw().Close()
		return nil, ctx.Err()
	}
	return l.Raw(), nil
}

// converse is begin with a connection that is closed afterwards.
func (c *Client) converse(ctx context.Context, req Request, guest any, read func(*link) error) error {
	l, err := c.beginRequest(ctx, req, guest, read)
	if err == nil {
		l.closeLink()
	}
	return err
}

// readDone reads a response that tells no more than that it was done.
func (l *link) readDone() error {
	_, err := l.receiveResponse()
	return err
}

// readAll reads responses until the last.
func (l *link) readAll(take func(Response)) error {
	for {
		r, err := l.receiveResponse()
		if err != nil {
			return err
		}
		if take(r); !r.More {
			return nil
		}
	}
}

// callForDone makes a request whose response tells no more than that it was done.
func (c *Client) callForDone(ctx context.Context, req Request) error {
	return c.converse(ctx, req, nil, (*link).readDone)
}

// callForOne makes a request with one response.
func (c *Client) callForOne(ctx context.Context, req Request) (r Response, err error) {
	err = c.converse(ctx, req, nil, func(l *link) (err error) {
		r, err = l.receiveResponse()
		return err
	})
	return r, err
}

// askSandboxes makes a request that is answered with sandboxes and their commands.
func (c *Client) askSandboxes(ctx context.Context, req Request) ([]Sandbox, error) {
	var found []Sandbox
	err := c.converse(ctx, req, nil, func(l *link) error {
		return l.readAll(func(r Response) {
			if r.Sandbox != nil {
				found = append(found, *r.Sandbox)
			}
			if last := len(found) - 1; r.Command != nil && last >= 0 {
				found[last].Commands = append(found[last].Commands, *r.Command)
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (c *Client) askSandbox(ctx context.Context, req Request) (Sandbox, error) {
	found, err := c.askSandboxes(ctx, req)
	if err != nil {
		return Sandbox{}, err
	}
	if len(found) != 1 {
		return Sandbox{}, fmt.Errorf("the keeper answered with %d sandboxes instead of one", len(found))
	}
	return found[0], nil
}

// Ping tells whether a keeper answers.
func (c *Client) Ping(ctx context.Context) error {
	return c.callForDone(ctx, Request{Verb: VerbPing})
}

// Launch starts a sandbox. It returns when the process runs (Attached), or
// when the starter has ended with 0; otherwise the error carries the end of
// the log. A cancelled Launch may still succeed: Kill and Forget it.
func (c *Client) Launch(ctx context.Context, l Launch) (Sandbox, error) {
	return c.askSandbox(ctx, Request{Verb: VerbLaunch, Launch: &l})
}

// Track names a sandbox's processes, the one that Wait waits for first. Each
// must be a child of the keeper, as what a starter leaves behind becomes. One that
// has already ended is fine; whoever could not see it any more names it with a
// Start of 0.
func (c *Client) Track(ctx context.Context, id string, processes []process.ID) error {
	l, err := c.connectKeeper(ctx)
	if err != nil {
		return err
	}
	defer l.closeLink()
	met, err := c.meetKeeper(ctx, l)
	if err != nil {
		return err
	}
	req := Request{Verb: VerbTrack, ID: id, Processes: processes}
	if met.checkRequest(&req) != nil || !met.countsAlike() {
		req.Processes, req.Pids = nil, numbers(processes)
	}
	if err := l.sendRequest(req, nil); err != nil {
		return err
	}
	return l.readDone()
}

func numbers(processes []process.ID) []int {
	pids := make([]int, 0, len(processes))
	for _, p := range processes {
		pids = append(pids, p.Pid)
	}
	return pids
}

// SetMeta replaces a sandbox's meta: JSON of at most 128 KiB.
func (c *Client) SetMeta(ctx context.Context, id string, meta json.RawMessage) error {
	return c.callForDone(ctx, Request{Verb: VerbSetMeta, ID: id, Meta: meta})
}

// List returns every sandbox, by id, the dead ones that nobody has forgotten
// included.
func (c *Client) List(ctx context.Context) ([]Sandbox, error) {
	return c.askSandboxes(ctx, Request{Verb: VerbList})
}

// Get returns one sandbox.
func (c *Client) Get(ctx context.Context, id string) (Sandbox, error) {
	return c.askSandbox(ctx, Request{Verb: VerbGet, ID: id})
}

// Signal sends a signal to every tracked process of a sandbox.
func (c *Client) Signal(ctx context.Context, id string, sig int) error {
	return c.callForDone(ctx, Request{Verb: VerbSignal, ID: id, Signal: sig})
}

// Kill ends a sandbox: SIGKILL to every tracked process and to a starter that
// still runs, and the channel closed. It returns when all are reaped. Killing
// what is dead does nothing.
func (c *Client) Kill(ctx context.Context, id string) error {
	return c.callForDone(ctx, Request{Verb: VerbKill, ID: id})
}

// Wait returns when the first tracked process has ended. A freeze is no end.
func (c *Client) Wait(ctx context.Context, id string) (ProcessExit, error) {
	r, err := c.callForOne(ctx, Request{Verb: VerbWait, ID: id})
	if err != nil {
		return ProcessExit{}, err
	}
	if r.Exit == nil {
		return ProcessExit{}, errors.New("the keeper told of no exit")
	}
	return *r.Exit, nil
}

// Freeze stops a sandbox, see Freeze. It is a fault.ErrUnavailable if the guest
// does not read its channel or a step fails, and the sandbox goes on; a
// fault.ErrConflict if it has ended. A cancelled Freeze may still succeed.
func (c *Client) Freeze(ctx context.Context, f Freeze) error {
	return c.callForDone(ctx, Request{Verb: VerbFreeze, ID: f.ID, Freeze: &f})
}

// Thaw lets a frozen sandbox go on. The launch starts its processes, which are
// to be tracked afterwards, with a new wire; one with nothing but an ID is for
// a sandbox that was stopped in place. The meta stays what it was. On an error
// the sandbox is frozen as before.
func (c *Client) Thaw(ctx context.Context, l Launch) error {
	return c.callForDone(ctx, Request{Verb: VerbThaw, ID: l.ID, Launch: &l})
}

// Forget drops a dead sandbox and the output of its commands. A living one is
// a fault.ErrConflict.
func (c *Client) Forget(ctx context.Context, id string) error {
	return c.callForDone(ctx, Request{Verb: VerbForget, ID: id})
}

// Shutdown ends the keeper; with living sandboxes it is a fault.ErrConflict.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.callForDone(ctx, Request{Verb: VerbShutdown})
}
