package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/webhook"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// approvals are the queue, its file, and those that it is told to.
type approvals struct {
	queue *approval.Queue
	store *store.Approvals
	quiet func() // ends the webhooks and waits for that
}

// openApprovals opens the queue, once the log is open: what the log has and the
// file lacks is made up for here.
func (d *Daemon) openApprovals(ctx context.Context) error {
	hooks, err := hooksOf(d.opts.Config.Approvals, written.OrAnywhere(d.opts.Paths.Written()))
	if err != nil {
		return err
	}
	d.approvals.store, err = d.openApprovalStore(ctx)
	if err != nil {
		return err
	}
	if err := d.seen.checkQueue(ctx, d.approvals.store); err != nil {
		return err
	}
	if err := d.seen.recordRollback(ctx); err != nil {
		return err
	}
	d.approvals.queue, err = approval.Open(ctx, approval.Config{
		Store: d.approvals.store, Log: d.records, Clock: d.clock, Logger: d.opts.Log, Mask: withoutSecrets(d.secretForms),
		PendingExpires: time.Duration(d.opts.Config.Approvals.PendingExpires), AfterRun: time.Duration(d.opts.Config.Approvals.AfterRun),
	})
	if err != nil {
		return err
	}
	sender, err := webhook.New(webhook.Config{
		Hooks: hooks, Source: d.approvals.queue, Cursors: d.approvals.store, Logger: d.opts.Log, Alarms: d.alarms.watchAlarms, FirstAlarm: d.alarms.first,
	})
	if err != nil {
		return err
	}
	telling, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		sender.Run(telling)
	})
	d.approvals.quiet = func() {
		end()
		<-done
	}
	return nil
}

// openApprovalStore moves a damaged file out of the way: the log has all that
// was in it, but for where the webhooks stand.
func (d *Daemon) openApprovalStore(ctx context.Context) (*store.Approvals, error) {
	path := d.opts.Paths.Approvals()
	s, err := store.OpenApprovals(ctx, path)
	if err == nil || !store.IsDamage(err) {
		return s, err
	}
	aside := fmt.Sprintf("%s.damaged-%d", path, time.Now().UnixNano())
	d.opts.Log.ErrorContext(ctx, "the approval queue's file is damaged; it is made anew from the log", "kept", aside, "err", err)
	if err := os.Rename(path, aside); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the damaged file %s can't be moved away", path)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+beside, aside+beside); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the damaged file %s can't be moved away", path+beside)
		}
	}
	return store.OpenApprovals(ctx, path)
}

func (d *Daemon) closeApprovals() {
	if d.approvals.quiet != nil {
		d.approvals.quiet()
	}
	if d.approvals.queue != nil {
		d.approvals.queue.Close()
	}
	if d.approvals.store != nil {
		if err := d.approvals.store.Close(); err != nil {
			d.opts.Log.Error("the approval queue's file did not close well", "err", err)
		}
	}
}

// hooksOf reads the webhooks' secrets. A hook that can't be keeps the daemon
// from starting: a person who waits for its messages would wait for ever.
func hooksOf(c config.Approvals, trees []hostpath.Tree) ([]webhook.Hook, error) {
	hooks := make([]webhook.Hook, 0, len(c.Webhooks))
	for i, w := range c.Webhooks {
		h := webhook.Hook{URL: w.URL, Format: webhook.Format(w.Format)}
		if w.Format == "" {
			h.Format = webhook.JSON
		}
		for _, name := range w.Events {
			h.Events = append(h.Events, approval.EventName(name))
		}
		var err error
		if h.Secret, err = w.Secret(trees); err == nil {
			err = h.Check()
		}
		if err != nil {
			return nil, fault.Invalid("the configuration is wrong: approvals.webhooks[%d]%s", i, err)
		}
		hooks = append(hooks, h)
	}
	return hooks, nil
}

// withoutSecrets makes a text one without the secrets that a set finds in it.
func withoutSecrets(forms *dlp.Set) func(text string) string {
	return redact.New(forms).Text
}
