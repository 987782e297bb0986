package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// How a command is followed.
const (
	progressEvery = time.Second
	quietTicks    = 5 // without a new line, progress is told only so seldom
	holdsTicks    = 2 // and it is looked so often whether a person is waited for
	endGrace      = 3 * time.Second
	reattachTries = 5
	reattachPause = 200 * time.Millisecond
)

// left is a command that somebody stays with, or left.
type left struct {
	sandbox, command string
	offset           int64 // of the output that is not in out
	out              *output

	mu   sync.Mutex // guards link
	link *client.Attachment
}

// followed is how following ended.
type followed struct {
	exit *api.Exit
	err  error
}

// follow returns how a command ended; or, with no exit, what it waits for. Where ctx ends
// before, the command is ended.
func (c call) follow(ctx context.Context, l *left) (*api.Exit, []api.Hold, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan followed, 1)
	errand.Go(func() {
		f := followed{err: errand.ErrLost}
		defer func() { ended <- f }()
		f.exit, f.err = c.peer.drain(life, l)
	})
	// Nobody else may touch l while it is drained.
	leave := func() followed {
		end()
		return <-ended
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	watch := watch{call: c, left: l}
	for {
		select {
		case f := <-ended:
			end()
			return f.exit, nil, f.err
		case <-tick.C:
			if holds := watch.look(ctx); holds != nil {
				if f := leave(); f.exit != nil {
					return f.exit, nil, nil
				}
				return nil, holds, nil
			}
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errClosing) {
				l.endCommand(ended)
			}
			end()
			return nil, nil, context.Cause(ctx)
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

// look tells the client how it goes; what is waited for is returned when that has lasted.
func (w *watch) look(ctx context.Context) []api.Hold {
	w.ticks++
	var holds []api.Hold
	if w.ticks%holdsTicks == 0 {
		// A look that fails says nothing; the command's own end will.
		holds, _ = ask(ctx, w.call.peer, func(b Backend) ([]api.Hold, error) { return b.Holds(ctx, w.left.sandbox) })
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

// drain takes a command's output until its end, over as many attachments as that needs.
func (p *peer) drain(ctx context.Context, l *left) (*api.Exit, error) {
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
	link, err := ask(ctx, p, func(b Backend) (*client.Attachment, error) { return b.Attach(ctx, l.sandbox, l.command, l.offset) })
	if err != nil {
		return nil, err
	}
	l.set(link)
	defer func() {
		l.set(nil)
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
			l.out.write(&l.out.stdout, event.Stdout)
		case event.Stderr != nil:
			l.out.write(&l.out.stderr, event.Stderr)
		}
	}
	return nil, client.ErrLost
}

func (l *left) set(link *client.Attachment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link = link
}

// endCommand ends a command that nobody waits for any more: it is asked to, and then made to.
func (l *left) endCommand(ended <-chan followed) {
	for _, signal := range []string{"TERM", "KILL"} {
		l.mu.Lock()
		if l.link != nil {
			_ = l.link.Signal(signal) // the link may just be ending with the command
		}
		l.mu.Unlock()
		grace := time.NewTimer(endGrace)
		select {
		case <-ended:
			grace.Stop()
			return
		case <-grace.C:
		}
	}
}
