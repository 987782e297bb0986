package daemon

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/unended"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon/watched"
)

// lostEvery is how often it is looked for begins whose end nobody will tell.
const lostEvery = time.Minute

// lost gives an end to what began and can't be told the end of any more: whoever would have
// told it was in the memory of a process that is gone.
type lost struct {
	registry *unended.Registry
	first    uint64 // record of this daemon
	looked   uint64 // what had begun at the last look; for look alone
}

// openRecords opens the log, makes what records are appended by, and finds out what an earlier
// daemon began.
func openRecords(ctx context.Context, d *Daemon) error {
	if err := d.openAudit(ctx); err != nil {
		return err
	}
	d.records = watched.Log(records.Masked(d.log, d.secretForms), d.telemetry)
	l, err := openLost(ctx, d.records, d.opts.Paths.Unended())
	d.lost = l
	return err
}

// followed reports whether a sandbox, a command, a cell, a call or a file on its way is followed to its
// end, or that is known and not written yet.
func followed(d *Daemon) func(unended.Begin) bool {
	return func(b unended.Begin) bool {
		if d.door.OwesEnd(b.Kind, b.Sandbox, b.Seq, b.Command()) {
			return true
		}
		if b.Kind == audit.KindSandbox {
			return d.sandboxes.Tends(context.Background(), b.Sandbox) || d.door.TendsSandbox(b.Sandbox)
		}
		if b.Kind == audit.KindFile {
			return d.door.FileUnderWay(b.Seq)
		}
		return d.sandboxes.Follows(b.Sandbox, b.Command()) || d.calls.Has(b.Sandbox)
	}
}

func openLost(ctx context.Context, log audit.Log, path string) (*lost, error) {
	registry, err := unended.Open(ctx, log, path)
	if err != nil {
		return nil, err
	}
	return &lost{registry: registry, first: registry.Next()}, nil
}

// endEarlier ends what an earlier daemon began, once the sandboxes that outlived it are taken
// over. Their commands are followed again, and have their own end.
func (l *lost) endEarlier(ctx context.Context, follows func(unended.Begin) bool) error {
	return l.registry.EndAll(ctx, "the daemon ended", func(b unended.Begin) bool {
		return b.Seq < l.first && !follows(b)
	})
}

// endFirst does what endEarlier does, at the start. A log that can't be written keeps no daemon from it:
// it is tried again.
func (l *lost) endFirst(ctx context.Context, follows func(unended.Begin) bool, log *slog.Logger) {
	if err := l.endEarlier(ctx, follows); err != nil {
		log.Error("the ends of what an earlier daemon began are not on record; it is tried again", "err", err)
	}
}

// endUnfollowed ends the sandboxes, commands, cells, calls and files on their way that nobody follows, and
// that have begun before the last look: those that the keeper had when it died, and those whose end
// could not be written.
func (l *lost) endUnfollowed(ctx context.Context, follows func(unended.Begin) bool) error {
	before := l.looked
	defer func() { l.looked = l.registry.Next() }()
	return l.registry.EndAll(ctx, "nobody follows it any more: its sandbox is gone, or its end could not be written", func(b unended.Begin) bool {
		return b.Seq < before && endedByFollower(b.Kind) && !follows(b)
	})
}

// endedByFollower reports whether the end of what such a record begins is told by somebody whom the daemon
// can ask whether he still will. A connection's and a tool's call are told while they go on; a build's by
// whoever makes it.
func endedByFollower(kind audit.Kind) bool {
	switch kind {
	case audit.KindCommand, audit.KindFile, audit.KindSandbox:
		return true
	case audit.KindNetwork, audit.KindTool, audit.KindBuild, audit.KindPackage, audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindFinding:
	}
	return false
}

// summaries write what only the memory of the daemon knows.
type summaries struct {
	nowAndThen, atTheEnd func(context.Context) error
}

func summariesOf(d *Daemon) summaries {
	return summaries{
		nowAndThen: func(ctx context.Context) error {
			d.api.RecordRefused(ctx, false)
			return d.door.SummariseGrown(ctx)
		},
		atTheEnd: func(ctx context.Context) error {
			d.api.RecordRefused(ctx, true)
			return d.door.Summarise(ctx)
		},
	}
}

// keepLooking looks for them again and again, and has summaries written; after an upgrade it finds those that the
// version before passed over. It returns what ends that and waits for it.
func (l *lost) keepLooking(ctx context.Context, follows func(unended.Begin) bool, write summaries, log *slog.Logger) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	safego.In(&both, func() {
		safego.Stay(ctx, func() { l.lookRegularly(ctx, follows, write.nowAndThen, log) })
	})
	safego.In(&both, func() {
		if err := l.registry.ReadEarlier(ctx); err != nil && ctx.Err() == nil {
			log.Error("what the version before passed over was not found, so that it has no end on record; it is tried again at the next start", "err", err)
		}
	})
	return func() {
		cancel()
		both.Wait()
		tellUnwritten(write.atTheEnd(context.WithoutCancel(ctx)), log)
	}
}

func tellUnwritten(err error, log *slog.Logger) {
	if err != nil {
		log.Error("how often refusals were repeated is not all on record", "err", err)
	}
}

func (l *lost) lookRegularly(ctx context.Context, follows func(unended.Begin) bool, write func(context.Context) error, log *slog.Logger) {
	tick := time.NewTicker(lostEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := write(ctx); ctx.Err() == nil {
			tellUnwritten(err, log)
		}
		if err := errors.Join(l.endEarlier(ctx, follows), l.endUnfollowed(ctx, follows)); err != nil && ctx.Err() == nil {
			log.Error("the ends of what was cut off are not on record; it is tried again", "err", err)
		}
	}
}
