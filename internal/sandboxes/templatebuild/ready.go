package templatebuild

import (
	"context"
	"regexp"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// launch starts the start command, if there is one.
func (j *job) launch(ctx context.Context, final setting) (*process, error) {
	if j.recipe.Start == "" {
		return nil, nil //nolint:nilnil // a process that is not there never breaks
	}
	j.g.log.addLine(Info, StepFinalize, "start: "+text.Shorten(j.recipe.Start, 300), true)
	c := j.shellCommand(final, j.recipe.Start)
	c.Timeout = 0 // it lives on in the template
	return j.startCommand(ctx, StepFinalize, c)
}

// awaitReady asks the ready command until it says yes, or the start command breaks.
func (j *job) awaitReady(ctx context.Context, started *process, final setting) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fault.New(fault.ErrExhausted, "the template was not ready within %s", readyWithin))
	defer cancel()
	for {
		ready, err := j.askReady(ctx, final)
		if err == nil {
			err = started.brokeError()
		}
		if ready || err != nil {
			return err
		}
		select {
		case <-time.After(readyPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// brokeError is how a start command ended that should not have: one may end well, and leave
// others behind.
func (p *process) brokeError() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
	default:
		return nil
	}
	if p.err != nil {
		return p.err
	}
	if err := p.failure(p.exit); err != nil {
		return fault.New(fault.ErrConflict, "the start command failed: %s", clientSentence(err))
	}
	return nil
}

// askReady asks once.
func (j *job) askReady(ctx context.Context, final setting) (bool, error) {
	if j.recipe.Ready == "" {
		return true, nil
	}
	p, err := j.startCommand(ctx, StepFinalize, j.shellCommand(final, readyCommand(j.recipe.Ready)))
	if err != nil {
		return false, err
	}
	exit, err := p.waitExit(ctx)
	return exit.Code == 0 && err == nil, err
}

// The command that the SDKs write to wait for a port.
var (
	portListed  = regexp.MustCompile(`^\[ -n "\$\(ss -Htuln sport = :([0-9]{1,5})\)" \]$`)
	portGrepped = regexp.MustCompile(`^ss -tuln \| grep :([0-9]{1,5})$`)
)

// readyCommand is a ready command as it can be asked here. The command that the SDKs write to wait
// for a port calls ss, which a template may not have, and to which the sandbox's kernel tells
// nothing: the port is connected to where that finds none.
func readyCommand(asked string) string {
	for _, form := range []*regexp.Regexp{portListed, portGrepped} {
		if port := form.FindStringSubmatch(asked); port != nil {
			return "{ " + asked + "; } 2>/dev/null || (exec 3<>/dev/tcp/127.0.0.1/" + port[1] + ") 2>/dev/null"
		}
	}
	return asked
}
