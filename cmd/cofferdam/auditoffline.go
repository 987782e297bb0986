package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// auditSource is what questions about the log are put to: the daemon, or the
// files of a log.
type auditSource interface {
	report(ctx context.Context, name string, q api.AuditQuestion) (api.AuditReport, error)
	queryRecords(ctx context.Context, q api.AuditQuery) iter.Seq2[audit.Record, error]
	stream(ctx context.Context, from uint64, follow bool) iter.Seq2[audit.Record, error]
	close() error
}

// openAuditSource opens a log's directory, or where none is named asks the daemon.
func openAuditSource(ctx context.Context, flags copyFlags) (auditSource, error) {
	if flags.dir != "" {
		return openLogCopy(ctx, flags)
	}
	if flags.key != "" || flags.checkpoint != "" || flags.partial {
		return nil, fault.Invalid("--key, --checkpoint and --partial say how a copy of a log is verified; name it with --log")
	}
	c, err := connectDaemon(ctx)
	if err != nil {
		return nil, err
	}
	return daemonLog{c}, nil
}

// daemonLog is the log of the daemon.
type daemonLog struct{ client *client.Client }

func (d daemonLog) report(ctx context.Context, name string, q api.AuditQuestion) (api.AuditReport, error) {
	return d.client.AuditReport(ctx, name, q)
}

func (d daemonLog) queryRecords(ctx context.Context, q api.AuditQuery) iter.Seq2[audit.Record, error] {
	return decoded(d.client.AuditQuery(ctx, q))
}

func (d daemonLog) stream(ctx context.Context, from uint64, follow bool) iter.Seq2[audit.Record, error] {
	return decoded(d.client.AuditStream(ctx, from, follow))
}

func (daemonLog) close() error { return nil }

func decoded(lines iter.Seq2[json.RawMessage, error]) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for line, err := range lines {
			var r audit.Record
			if err == nil {
				if err = json.Unmarshal(line, &r); err != nil {
					err = fmt.Errorf("read a record: %w", err)
				}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
