package sandbox

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/expiry"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// lifetimes end sandboxes whose time is over, or pause them.
type lifetimes struct {
	cfg        *Config
	registry   *registry
	tracker    *tracker
	remover    *remover
	pauser     *pauser
	background *background
}

// expired takes what the schedule tells: sandboxes whose time is over, a few at one
// time.
func (l *lifetimes) expired(id string, why expiry.Cause) {
	owner := ""
	if s, err := l.registry.getSandbox(id); err == nil {
		owner = s.info.Owner.Token
	}
	l.background.inTurn(owner, func() {
		if s, err := l.registry.getSandbox(id); err == nil && !l.background.isOver() {
			l.endSandbox(s, why)
		}
	})
}

// endSandbox pauses a sandbox whose time is over or that nobody used, or destroys it, as its
// client has said.
func (l *lifetimes) endSandbox(s *Sandbox, why expiry.Cause) {
	ctx, id := l.background.ctx, s.info.ID
	if why == expiry.CauseIdle && (s.clients.Any() || s.commands.Any()) {
		l.tracker.ends.Busy(id)
		return
	}
	reason := "its time is over"
	if why == expiry.CauseIdle {
		reason = "nobody used it for its idle time"
	}
	if then := s.Lifetime().Then; then.Pauses() {
		err := l.pauser.pauseSandbox(ctx, id, then == ThenPauseFiles)
		if err == nil || s.waits.View().State == suspend.Paused { // a client was faster
			l.tracker.ends.Renew(id)
			return
		}
		if l.background.isOver() {
			return // the next daemon finds its time over
		}
		l.cfg.Log.Error("a sandbox whose time is over can't be paused and is destroyed", "sandbox", id, "run", s.info.Run, "err", err)
		reason += ", and it could not be paused"
	}
	if err := l.remover.endSandbox(ctx, s, reason); err != nil && !errors.Is(err, context.Canceled) {
		l.cfg.Log.Error("a sandbox whose time is over can't be destroyed", "sandbox", id, "run", s.info.Run, "err", err)
	}
}
