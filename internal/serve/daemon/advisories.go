package daemon

import (
	"context"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// openAdvisories opens the imported facts about packages. A damaged database
// keeps the daemon from nothing but letting packages in.
func (d *Daemon) openAdvisories() {
	d.advisory = advisory.Open(d.opts.Paths.Advisories(), advisory.Options{Trees: func() []hostpath.Tree {
		return written.OrAnywhere(d.opts.Paths.Written())
	}})
	if err := d.advisory.Damage(); err != nil {
		d.opts.Log.Error("packages are refused", "err", err)
	}
}

// reviewLog makes up, in the background, for a review that the last daemon did
// not end. It returns what ends it and waits for that.
func (d *Daemon) reviewLog(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		if !d.advisory.ReviewDue() {
			return
		}
		alarms, err := d.advisory.Review(ctx, d.log)
		for _, a := range alarms {
			d.opts.Log.WarnContext(ctx, "a release that was let in is malicious", "package", a.Name, "version", a.Version, "advisory", a.Advisory)
		}
		if err != nil && ctx.Err() == nil {
			d.opts.Log.ErrorContext(ctx, "the log could not be reviewed by the new advisories", "err", err)
		}
	})
	return func() {
		cancel()
		<-done
	}
}
