package daemon

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/config"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/e2b"
	"github.com/cofferdam-dev/cofferdam/internal/policies"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
)

// poolLook is how often it is looked whether templates and policies are still
// what the pool was made for.
const poolLook = 15 * time.Second

// keepPool tells the manager what to hold ready, until ctx ends. A policy or
// template that is not there is no reason to end: it may come.
func (d *Daemon) keepPool(ctx context.Context) (stop func()) {
	if len(d.opts.Config.Pool) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	errand.Go(func() {
		defer close(done)
		tick := time.NewTicker(poolLook)
		defer tick.Stop()
		said := ""
		for {
			if err := errand.Try(func() error { return d.setPool(ctx) }); err != nil && ctx.Err() == nil && err.Error() != said {
				said = err.Error()
				d.opts.Log.Warn("the pool can't be kept as configured", "err", err)
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

// setPool holds ready what can be, and returns the first reason why something
// can't.
func (d *Daemon) setPool(ctx context.Context) (first error) {
	var targets []sandbox.PoolTarget
	for _, p := range d.opts.Config.Pool {
		request, err := d.poolRequest(ctx, p)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		targets = append(targets, sandbox.PoolTarget{Request: request, Size: p.Size})
	}
	if err := d.sandboxes.SetPool(ctx, targets); err != nil {
		return err
	}
	return first
}

// poolRequest is what a client over the network would ask for.
func (d *Daemon) poolRequest(ctx context.Context, p config.Pool) (sandbox.Request, error) {
	name := p.Policy
	if name == "" {
		name = policies.DefaultName
	}
	named, err := d.clients.policies.Get(name)
	if err != nil {
		return sandbox.Request{}, err
	}
	template := p.Template
	if template == "" {
		template = d.opts.Config.DefaultTemplate
	}
	t, err := d.templates.Get(ctx, template)
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
