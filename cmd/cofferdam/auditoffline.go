package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/ui"
)

// auditSource is what questions about the log are put to: the daemon, or the
// files of a log.
type auditSource interface {
	report(ctx context.Context, name string, q api.AuditQuestion) (api.AuditReport, error)
	query(ctx context.Context, q api.AuditQuery) iter.Seq2[audit.Record, error]
	stream(ctx context.Context, from uint64, follow bool) iter.Seq2[audit.Record, error]
	close() error
}

// openAuditSource opens a log's directory, or with "" asks the daemon.
func openAuditSource(ctx context.Context, dir string) (auditSource, error) {
	if dir != "" {
		return openLogCopy(ctx, dir)
	}
	c, err := connect(ctx)
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

func (d daemonLog) query(ctx context.Context, q api.AuditQuery) iter.Seq2[audit.Record, error] {
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

// logCopy is a log's directory, with an index in a temporary one.
type logCopy struct {
	log   *audit.Reader
	index *index.Index
	dir   string
}

// openLogCopy verifies the log first: of one that is not what its checkpoints say nothing
// is told, since whoever changed it has chosen the answer.
func openLogCopy(ctx context.Context, dir string) (*logCopy, error) {
	if err := verifyCopy(ctx, dir); err != nil {
		return nil, err
	}
	log, err := audit.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp("", "cofferdam-audit-")
	if err != nil {
		return nil, fmt.Errorf("make a place for the index: %w", err)
	}
	line := ui.NewLine(os.Stderr)
	options := index.Options{Progress: func(done, end uint64) {
		line.Show(fmt.Sprintf("%d of %d records read", done, end))
		if done+10_000 >= end {
			line.Clear()
		}
	}}
	return &logCopy{log, index.New(filepath.Join(temporary, "audit.db"), log, options), temporary}, nil
}

// verifyCopy refuses a log that is not sound, and says on the standard error what is proved
// of one that is.
func verifyCopy(ctx context.Context, dir string) error {
	verdict, err := audit.Verify(ctx, dir, audit.VerifyOptions{})
	if err != nil {
		return err
	}
	if !verdict.Sound {
		what := "it does not fit its checkpoints"
		if len(verdict.Problems) > 0 {
			what = problemText(verdict.Problems[0])
		}
		return fault.New(fault.ErrConflict, "the log in %s is not as it was written, so nothing is told of it: %s; cofferdam audit verify --dir %s tells more", dir, what, dir)
	}
	unproved := ""
	if more := verdict.Records - verdict.Covered; more > 0 {
		unproved = fmt.Sprintf("; no checkpoint covers the last %d of them yet, so nothing proves these", more)
	}
	_, err = fmt.Fprintf(os.Stderr, "cofferdam: verified the log in %s by the key that lies with it: %s%s\n",
		ui.Printable(dir), ui.Plural(int(min(verdict.Records, math.MaxInt)), "record", "records"), unproved)
	return err
}

func (l *logCopy) report(ctx context.Context, name string, asked api.AuditQuestion) (api.AuditReport, error) {
	q, err := httpapi.AuditQuestion(asked)
	if err != nil {
		return api.AuditReport{}, err
	}
	answer, err := report.New(report.Config{Index: l.index}).Answer(ctx, name, q)
	return httpapi.ViewReport(answer), err
}

func (l *logCopy) query(ctx context.Context, q api.AuditQuery) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		f, err := httpapi.AuditFilter(q)
		seqs := []uint64{}
		if err == nil {
			err = l.index.View(ctx, func(v *index.View) (err error) {
				seqs, _, err = v.Select(ctx, f)
				return err
			})
		}
		if err != nil {
			yield(audit.Record{}, err)
			return
		}
		l.log.Records(ctx, audit.Filter{Seqs: seqs})(yield)
	}
}

// stream has nothing to follow: nobody appends to a copy.
func (l *logCopy) stream(ctx context.Context, from uint64, _ bool) iter.Seq2[audit.Record, error] {
	return l.log.Records(ctx, audit.Filter{FromSeq: from})
}

func (l *logCopy) close() error { return errors.Join(l.index.Close(), os.RemoveAll(l.dir)) }
