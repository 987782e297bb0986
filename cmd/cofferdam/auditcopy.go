package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// copyFlags say which log's files are read in the place of the daemon's, and what of them is
// trusted.
type copyFlags struct {
	dir        string // "": the daemon is asked
	key        string
	checkpoint string
	partial    bool
}

func (f *copyFlags) registerFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.dir, "log", "", "read the log in this directory, or a copy of it, once it is verified, and ask no daemon")
	set.StringVar(&f.key, "key", "", "with --log: the public key that you trust: a file, or the key itself")
	set.StringVar(&f.checkpoint, "checkpoint", "", "with --log: a file of log checkpoints that you kept")
	set.BoolVar(&f.partial, "partial", false, "with --log: go on though records are elsewhere, or no checkpoint covers the last ones")
	registerCompletion(cmd, "log", completeDirs)
}

// listOfRuns is the command that lists the runs of the log that the flags name.
func (f *copyFlags) listOfRuns() string {
	if f.dir == "" {
		return "cofferdam " + listsOf()["run"].command
	}
	words := []string{"cofferdam", "audit", "query", "--kind", "sandbox", "--log", f.dir}
	if f.key != "" {
		words = append(words, "--key", f.key)
	}
	if f.checkpoint != "" {
		words = append(words, "--checkpoint", f.checkpoint)
	}
	if f.partial {
		words = append(words, "--partial")
	}
	return ui.ShellLine(words)
}

// verification is what the flags say to trust.
func (f *copyFlags) verification() (options audit.VerifyOptions, err error) {
	files := auditFiles{key: f.key}
	if options.Keys, err = files.readKeys(); err != nil {
		return options, err
	}
	if f.checkpoint != "" {
		if options.Kept, err = os.ReadFile(f.checkpoint); err != nil {
			err = fault.Wrap(fault.ErrInvalid, err, "the kept log checkpoint can't be read")
		}
	}
	return options, err
}

// logCopy is a log's directory, with an index in a temporary one.
type logCopy struct {
	log     *audit.Reader
	index   *index.Index
	dir     string
	verdict audit.Verdict
}

// openLogCopy verifies the log first: of one that is not what its checkpoints say nothing
// is told, since whoever changed it has chosen the answer.
func openLogCopy(ctx context.Context, flags copyFlags) (*logCopy, error) {
	options, err := flags.verification()
	if err != nil {
		return nil, err
	}
	temporary, err := os.MkdirTemp("", "cofferdam-audit-")
	if err != nil {
		return nil, fmt.Errorf("make a place for the index: %w", err)
	}
	log, verdict, err := audit.OpenVerified(ctx, flags.dir, temporary, options)
	if err == nil {
		err = flags.judgeVerdict(verdict)
	}
	if err != nil {
		if log != nil {
			err = errors.Join(err, log.Close())
		}
		return nil, errors.Join(err, os.RemoveAll(temporary))
	}
	line := ui.NewLine(os.Stderr)
	indexing := index.Options{Progress: func(done, end uint64) {
		line.Show(fmt.Sprintf("%d of %d records read", done, end))
		if done+10_000 >= end {
			line.Clear()
		}
	}}
	return &logCopy{log, index.New(filepath.Join(temporary, "audit.db"), log, indexing), temporary, verdict}, nil
}

// judgeVerdict refuses a log that is not sound, or not whole, and says on the standard error what is
// proved of one that is, and by which key.
func (f *copyFlags) judgeVerdict(v audit.Verdict) error {
	if !v.Sound {
		what := "it does not fit its checkpoints"
		if len(v.Problems) > 0 {
			what = problemText(v.Problems[0])
		}
		return fault.New(fault.ErrConflict, "the log in %s is not as it was written, so nothing is told of it: %s; cofferdam audit verify --dir %s tells more", f.dir, what, f.dir)
	}
	missing := ""
	if tail := v.Records - min(v.Records, v.Covered); tail > 0 {
		missing = fmt.Sprintf("no checkpoint covers the last %d of its %d records, so whoever had the copy can have written them (a daemon covers what it writes within a second, and all when it ends: copy it again)", tail, v.Records)
	}
	if v.Elsewhere > 0 {
		if missing != "" {
			missing += ", and "
		}
		missing += fmt.Sprintf("%d of its records are sealed and elsewhere, so nothing can be told of these (put their files back)", v.Elsewhere)
	}
	if missing != "" && !f.partial {
		return fault.New(fault.ErrConflict, "the log in %s is not whole: %s; with --partial you are told of what is there", f.dir, missing)
	}
	key := "the key that you gave"
	if v.KeyFrom == "log" {
		key = "the key that lies with it, which whoever replaced the log can have replaced (give yours with --key)"
	}
	text := fmt.Sprintf("cofferdam: verified the log in %s by %s: %s", f.dir, key, ui.Plural(int(min(v.Records, math.MaxInt)), "record", "records"))
	if missing != "" {
		text += "; NOT WHOLE: " + missing
	}
	_, err := fmt.Fprintln(os.Stderr, ui.Printable(text))
	return err
}

func (l *logCopy) report(ctx context.Context, name string, asked api.AuditQuestion) (api.AuditReport, error) {
	q, err := httpapi.AuditQuestion(asked)
	if err != nil {
		return api.AuditReport{}, err
	}
	answer, err := report.New(report.Config{Index: l.index, Own: true, Verify: func(context.Context) (audit.Verdict, error) { return l.verdict, nil }}).Answer(ctx, name, q)
	return httpapi.ViewReport(answer), err
}

func (l *logCopy) queryRecords(ctx context.Context, q api.AuditQuery) iter.Seq2[audit.Record, error] {
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

func (l *logCopy) close() error {
	return errors.Join(l.index.Close(), l.log.Close(), os.RemoveAll(l.dir))
}
