package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

// poolLook is how often it is looked whether templates and policies are still
// what the pool was made for.
const poolLook = 15 * time.Second

// poolTargets is what is held ready for clients.
type poolTargets struct {
	config    func() config.Config // as it is now
	sandboxes *sandbox.Manager
	policies  *namedpolicy.Store
	templates *template.Store
	log       *slog.Logger
}

// keepTargets tells the manager what to hold ready, until ctx ends. A policy or
// template that is not there is no reason to end: it may come.
func (s poolTargets) keepTargets(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		tick := time.NewTicker(poolLook)
		defer tick.Stop()
		said := ""
		for {
			if err := safego.Try(func() error { return s.setTargets(ctx) }); err != nil && ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				s.log.Warn("the pool can't be kept as configured", "err", err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); <-done }
}

// setTargets holds ready what can be, and returns the first reason why something
// can't.
func (s poolTargets) setTargets(ctx context.Context) (first error) {
	var targets []sandbox.PoolTarget
	cfg := s.config()
	for _, p := range cfg.Pool {
		request, err := s.request(ctx, p, cfg.DefaultTemplate)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		targets = append(targets, sandbox.PoolTarget{Request: request, Size: p.Size})
	}
	if err := s.sandboxes.SetPool(ctx, targets); err != nil {
		return err
	}
	return first
}

// request is what a client over the network would ask for.
func (s poolTargets) request(ctx context.Context, p config.Pool, template string) (sandbox.Request, error) {
	named, err := s.policies.Get(cmp.Or(p.Policy, namedpolicy.DefaultName))
	if err != nil {
		return sandbox.Request{}, err
	}
	t, err := s.templates.Get(ctx, cmp.Or(p.Template, template))
	if err != nil {
		return sandbox.Request{}, err
	}
	uid, gid := backend.GuestIDs()
	request := sandbox.Request{
		Template: t.Name, Policy: named.Policy, PolicyText: named.Text, PolicySource: named.Path,
		HostUID: uid, HostGID: gid,
	}
	if p.Wire != config.WireV1 {
		request.Account = e2b.Account()
	}
	return request, nil
}
