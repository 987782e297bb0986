// Package watched stands around the daemon's parts and tells telemetry what they do:
// neither they nor telemetry know of each other.
package watched

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// countedLog is an audit log whose records are counted.
type countedLog struct {
	audit.Log
	tel *telemetry.Telemetry
}

// Log counts the records that are appended to a log, and tells of the commands and
// sandboxes that they are about.
func Log(log audit.Log, tel *telemetry.Telemetry) audit.Log { return countedLog{log, tel} }

// Append implements audit.Log.
func (l countedLog) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	began := time.Now()
	r, err := l.Log.Append(ctx, r)
	l.tel.Appended(ctx, began, err)
	if err == nil {
		l.recorded(ctx, r)
	}
	return r, err
}

// recorded is told of a durable record. A command's is written before the
// command starts, so what the command asks for finds it.
func (l countedLog) recorded(ctx context.Context, r audit.Record) {
	l.tel.Recorded(telemetry.Record{Sandbox: r.Sandbox, Run: r.Run, Kind: string(r.Kind), Outcome: string(r.Outcome)})
	switch r.Kind {
	case audit.KindPackage:
		l.tel.Decided(r.Ecosystem, string(r.Outcome))
	case audit.KindCommand:
		switch r.Outcome { //nolint:exhaustive // The others neither begin nor end a command.
		case audit.Started:
			l.tel.Begun(ctx, r.Sandbox)
		case audit.Finished:
			l.tel.Exited(r.Exit)
		}
	case audit.KindSandbox:
		if r.Outcome == audit.Finished {
			l.tel.Ended(r.Sandbox)
		}
	case audit.KindNetwork, audit.KindDaemon, audit.KindBuild, audit.KindApproval, audit.KindLog, audit.KindTool, audit.KindFinding, audit.KindFile:
	}
}
