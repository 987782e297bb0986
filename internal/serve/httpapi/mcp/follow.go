package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// How a command is followed.
const (
	quietTicks    = 5                // looks without a new line, until progress is told all the same
	holdsTicks    = 2                // looks, for one whether a person is waited for
	killLimit     = 20 * time.Second // for a kill to be confirmed, which takes the daemon 15 at most
	reattachTries = 5
	reattachPause = 200 * time.Millisecond
	stayPause     = time.Second // before the daemon is told again that the peer is there
)

// left is a command that somebody stays with, or left.
type left struct {
	sandbox, command string
	offset           int64 // of the output that is not in out
	out              *commandOutput
}

// followed is how following ended.
type followed struct {
	exit *api.Exit
	err  error
}

// followCommand returns how a command ended; or, with no exit, what it waits for. Where ctx ends
// before, the command is killed with all that it has started before followCommand returns.
func (c call) followCommand(ctx context.Context, l *left) (*api.Exit, []api.Hold, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan followed, 1)
	safego.Go(func() {
		f := followed{err: safego.ErrLost}
		defer func() { ended <- f }()
		f.exit, f.err = c.peer.drainOutput(life, l)
	})
	// Nobody else may touch l while it is drained.
	leave := func() followed {
		end()
		return <-ended
	}
	tick := time.NewTicker(c.peer.cfg.ProgressEvery)
	defer tick.Stop()
	watch := watch{call: c, left: l}
	for {
		select {
		case f := <-ended:
			end()
			return f.exit, nil, f.err
		case <-tick.C:
			if holds := watch.tellProgress(ctx); holds != nil {
				if f := leave(); f.exit != nil {
					return f.exit, nil, nil
				}
				return nil, holds, nil
			}
		case <-ctx.Done():
			defer end()
			if errors.Is(context.Cause(ctx), errClosing) {
				return nil, nil, errClosing
			}
			unconfirmed := c.peer.killCommand(ctx, l)
			if unconfirmed != nil && leave().exit == nil {
				c.peer.keepLeft(l)
			}
			return nil, nil, cmp.Or(unconfirmed, context.Cause(ctx))
		}
	}
}

// watch looks at a command now and then.
type watch struct {
	call  call
	left  *left
	ticks int
	held  time.Time // since when something is waited for
	quiet int
}

// tellProgress tells the client how it goes; what is waited for is returned when that has lasted.
func (w *watch) tellProgress(ctx context.Context) []api.Hold {
	w.ticks++
	var holds []api.Hold
	if w.ticks%holdsTicks == 0 {
		// A look that fails says nothing; the command's own end will.
		holds, _ = askBackend(ctx, w.call.peer, func(b Backend) ([]api.Hold, error) { return b.Holds(ctx, w.left.sandbox) })
		switch {
		case len(holds) == 0:
			w.held = time.Time{}
		case w.held.IsZero():
			w.held = time.Now()
		}
	}
	line, fresh := w.left.out.excerpt()
	for _, h := range w.call.peer.waitingFor(holds) {
		line, fresh = fmt.Sprintf("waits for a person: %s, request %s; %s", h.For, h.Request, h.Answer), true
	}
	if w.quiet++; fresh || w.quiet >= quietTicks {
		w.quiet = 0
		w.call.progress(ctx, float64(w.ticks), line)
	}
	if len(holds) > 0 && time.Since(w.held) >= w.call.peer.cfg.Patience && w.call.peer.mayLeave() {
		return holds
	}
	return nil
}

// progress tells the client that a call goes on, if it wants to know.
func (c call) progress(ctx context.Context, at float64, message string) {
	token := c.req.Params.GetProgressToken()
	if token == nil {
		return
	}
	// A client that does not hear it hears the result.
	_ = c.req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: at, Message: message})
}

// drainOutput takes a command's output until its end, over as many attachments as that needs.
func (p *peer) drainOutput(ctx context.Context, l *left) (*api.Exit, error) {
	for tries := 0; ; tries++ {
		if tries > 0 {
			timer := time.NewTimer(time.Duration(tries) * reattachPause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil, context.Cause(ctx)
			}
		}
		before := l.offset
		exit, err := p.drainOnce(ctx, l)
		if l.offset > before {
			tries = 0
		}
		switch {
		case exit != nil:
			return exit, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case client.StatusOf(err) != 0, !errors.Is(err, client.ErrLost) && !errors.Is(err, client.ErrNoDaemon), tries >= reattachTries:
			return nil, err
		}
	}
}

func (p *peer) drainOnce(ctx context.Context, l *left) (*api.Exit, error) {
	link, err := askBackend(ctx, p, func(b Backend) (*client.Attachment, error) { return b.Attach(ctx, l.sandbox, l.command, l.offset) })
	if err != nil {
		return nil, err
	}
	defer func() {
		l.offset = link.Offset()
		_ = link.Close() // it has nothing left to say
	}()
	for event, err := range link.Events() {
		switch {
		case err != nil:
			return nil, err
		case event.Exit != nil:
			return event.Exit, nil
		case event.Gap > 0:
			l.out.missed()
		case event.Stdout != nil:
			l.out.writeTo(&l.out.stdout, event.Stdout)
		case event.Stderr != nil:
			l.out.writeTo(&l.out.stderr, event.Stderr)
		}
	}
	return nil, client.ErrLost
}

// killCommand kills a command that nobody waits for any more, and all that it has started, such
// as what has left its session. It returns when the sandbox says that all of it is gone. It is
// no TERM first: a program that ends by that leaves what it has started, and nobody knows it then.
func (p *peer) killCommand(ctx context.Context, l *left) error {
	within, end := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
	defer end()
	err := tellBackend(within, p, func(b Backend) error { return b.SignalCommand(within, l.sandbox, l.command, "KILL", true) })
	if err == nil || client.StatusOf(err) == http.StatusNotFound { // its sandbox is gone, or it has ended and was forgotten
		return nil
	}
	return failure(codeCancelled, fmt.Sprintf("the call was cancelled, and it is not confirmed that the command %s ended: %s", l.command, err),
		"it may run on in the sandbox "+l.sandbox+"; wait_command finds it again, and delete_sandbox ends it for sure")
}

// keepLeft keeps in mind a command that could not be killed, such as one of a frozen sandbox: nobody
// hears the answer to a cancelled call, and the next wait for it is to find it.
func (p *peer) keepLeft(l *left) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.left) < maxLeft {
		p.left[l.command] = l
	}
}
