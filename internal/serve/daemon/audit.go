package daemon

import (
	"cmp"
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/publish"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
)

// openAudit opens the log and begins to publish its checkpoints, if the
// configuration says where to.
func (d *Daemon) openAudit(ctx context.Context) (err error) {
	d.secretForms = dlp.NewSet(secrets.Rules()...)
	keeping := d.opts.Config.Audit
	if d.clock, err = clock.Open(d.opts.Paths.Clock(), clock.Options{}); err != nil {
		return err
	}
	d.time = timekeeper{clock: d.clock, operator: d.opts.Log, accepted: func() { d.gateway.renewGateway() }}
	d.seen = memory{paths: d.opts.Paths, keeping: keeping, mayAny: d.opts.AcceptRollback, operator: d.opts.Log}
	if err := d.seen.checkLog(); err != nil {
		return err
	}
	d.log, err = audit.Open(d.opts.Paths.Audit(), audit.Options{KeyFile: cmp.Or(keeping.KeyFile, d.opts.Paths.AuditKey()), Clock: d.clock})
	if err == nil {
		d.alarms = followAlarms(ctx, d.log, d.telemetry, d.opts.Log)
		d.seen.log = d.log
		err = d.seen.recordRollback(ctx)
	}
	if err == nil {
		d.time.log = d.log
		err = d.time.startWatch(ctx)
	}
	if err != nil || !keeping.Publish.Wanted() {
		return err
	}
	d.publisher = publish.Start(publish.Config{
		File: keeping.Publish.File, Written: func() ([]hostpath.Tree, error) { return written.Read(d.opts.Paths.Written()) }, Command: keeping.Publish.Command, URL: keeping.Publish.URL,
		Every: time.Duration(keeping.Publish.Every), Dir: d.opts.Paths.Audit(), Log: d.opts.Log,
		Latest: func() (int64, []byte) {
			last, note := d.log.Checkpoint()
			return last.Size, note
		},
	})
	return nil
}

// closeAudit ends the log, which makes a last checkpoint, and then the publisher,
// which tries to hand that out.
func (d *Daemon) closeAudit() {
	if d.log == nil {
		return
	}
	d.alarms.endFollower()
	if err := d.log.Close(); err != nil {
		d.opts.Log.Error("the log did not close well", "err", err)
	}
	if len(d.seen.accepted) == 0 { // one that was not accepted is not remembered
		d.seen.rememberCheckpoint()
	}
	if d.publisher != nil {
		d.publisher.Close()
	}
}
