package daemon

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// closeTraces bounds how long the daemon's end waits for the last spans.
const closeTraces = 5 * time.Second

// startTelemetry makes what counts and traces, before any part reports to it.
func (d *Daemon) startTelemetry(context.Context) error {
	traces := d.opts.Config.Telemetry.Traces
	runs := telemetry.NewRuns()
	d.opts.Log = telemetry.WithRuns(d.opts.Log, func(sandbox string) string {
		if run := runs.Of(sandbox); run != "" {
			return run
		}
		if door := d.runs.Load(); door != nil {
			return door.RunOf(sandbox)
		}
		return ""
	})
	var err error
	d.telemetry, err = telemetry.New(telemetry.Config{
		Version: d.opts.Version, Log: d.opts.Log, Runs: runs,
		Traces: telemetry.Traces{URL: traces.URL(), Headers: traces.Headers, File: traces.File, Ratio: traces.Ratio()},
	})
	return err
}

func (d *Daemon) closeTelemetry() {
	if d.telemetry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTraces)
	defer cancel()
	if err := d.telemetry.Close(ctx); err != nil {
		d.opts.Log.Warn("the last spans were not handed out", "err", err)
	}
}

// watchParts tells telemetry what to look up at each scrape, once all parts are there.
func (d *Daemon) watchParts() {
	size := &sizeOf{dir: d.opts.Paths.Audit()}
	size.sumAgain() // the first scrape has it
	d.telemetry.Watch(telemetry.Sources{
		Sandboxes: d.countSandboxes,
		Pool: func() telemetry.Pool {
			c := d.sandboxes.PoolCounts()
			return telemetry.Pool{Ready: c.Ready, Hits: c.Hits, Misses: c.Misses}
		},
		Pending: d.approvals.queue.Waiting,
		Log: func() telemetry.LogSize {
			next, _ := d.log.End()
			bytes, _ := size.lastSum()
			return telemetry.LogSize{Records: int64(next), Bytes: bytes}
		},
		Load: watchLoad(d.opts, d.sandboxes),
		Jump: func() time.Duration { return d.clock.Read().Jump() },
		Ready: func() map[string]bool {
			passes := map[string]bool{}
			for _, r := range d.health.results(context.Background()) {
				passes[r.name] = r.err == nil
			}
			return passes
		},
	})
}

// countSandboxes counts the sandboxes by state, and has every state, so that a state without a sandbox is a 0 and not
// a gap.
func (d *Daemon) countSandboxes() map[string]int {
	counts := map[string]int{}
	for _, s := range []sandbox.State{
		sandbox.Creating, sandbox.Running, sandbox.Freezing, sandbox.Frozen, sandbox.Paused, sandbox.Thawing, sandbox.Destroying, sandbox.Failed,
	} {
		counts[string(s)] = 0
	}
	for _, s := range d.sandboxes.List() {
		state, _ := s.State()
		counts[string(state)]++
	}
	return counts
}
