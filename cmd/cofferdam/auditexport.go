package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/export"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// exportFlags are what an export was asked for.
type exportFlags struct {
	format, out, cursor string
	from                uint64
	follow              bool
	log                 copyFlags
}

func newAuditExport() *cobra.Command {
	var flags exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the records for another system",
		Long: `Writes all records, oldest first, as JSON lines or CSV. The fields timestamp,
agent_run_id, package_name, requested_version, installed_version, source_url,
package_hash_sha256, resolved_by and outcome come first, then the rest.

With --follow it waits for new records and writes each as it comes, until you stop
it; when the daemon ends, it waits for the next one. With --out and --cursor it can
be continued after any end, even a kill or a full disk: records are durable in the
file before the cursor moves, and the next start cuts the file back to the cursor.
So no record is lost, and none is there twice.

In CSV, a text that a spreadsheet would take for a formula has a ' in front, and
control characters are escaped. JSON lines have every text as it is.`,
		Example: `  cofferdam audit export --format csv > records.csv
  cofferdam audit export --follow --out records.jsonl --cursor records.cursor
  cofferdam audit export --log copy/audit --out records.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.cursor != "" && flags.out == "" {
				return usageError(cmd, "--cursor needs --out: what a pipe has taken can't be taken back")
			}
			if flags.cursor != "" && cmd.Flags().Changed("from") {
				return usageError(cmd, "--from and --cursor both say where to begin")
			}
			if flags.follow && flags.log.dir != "" {
				return usageError(cmd, "--follow asks the daemon; nothing comes to a copy of a log")
			}
			return flags.runExport(cmd.Context())
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.format, "format", string(export.JSONL), "jsonl or csv")
	set.BoolVar(&flags.follow, "follow", false, "wait for new records")
	set.StringVar(&flags.out, "out", "", "the file to write (default: standard output)")
	set.StringVar(&flags.cursor, "cursor", "", "the file that says how far --out is good; made if it is not there")
	set.Uint64Var(&flags.from, "from", 0, "begin with this record")
	flags.log.registerFlags(cmd)
	registerCompletion(cmd, "format", completeWords(string(export.JSONL), string(export.CSV)))
	incomplete(cmd, "from")
	return cmd
}

// sink is where an export writes: a file with its cursor, or a stream.
type sink interface {
	Write(r audit.Record) error
	Commit() error
	Next() uint64
	Continues(before audit.Record) error
	Close() error
}

func (f *exportFlags) runExport(ctx context.Context) (err error) {
	format, err := export.ParseFormat(f.format)
	if err != nil {
		return err
	}
	source, err := openAuditSource(ctx, f.log)
	if err != nil {
		return err
	}
	defer func() { err = withClose(err, source.close()) }()
	out, err := f.openSink(format)
	if err != nil {
		return err
	}
	ctx, stop := interrupted(ctx)
	defer stop()
	err = f.copyRecords(ctx, source, out)
	if ctx.Err() != nil {
		err = nil // it was stopped: an orderly end
	}
	if err != nil { // what is not committed does not count
		return err
	}
	return out.Close()
}

func (f *exportFlags) openSink(format export.Format) (sink, error) {
	if f.out != "" {
		return f.openFile(format)
	}
	s := &streamSink{w: bufio.NewWriter(os.Stdout), format: format, next: f.from}
	_, err := s.w.Write(export.Head(format))
	return s, err
}

// openFile opens the output that is named, and its cursor.
func (f *exportFlags) openFile(format export.Format) (sink, error) {
	out, err := fromHere(f.out)
	if err != nil {
		return nil, err
	}
	cursor := ""
	if f.cursor != "" {
		if cursor, err = fromHere(f.cursor); err != nil {
			return nil, err
		}
	}
	opened, err := export.Open(out, cursor, format, agentTrees())
	if _, link := errors.AsType[*hostpath.LinkError](err); link {
		return nil, fault.Invalid("the output or its cursor %s", because(err))
	}
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// mostFailures in a row, without a record between them, end an export.
const mostFailures = 5

// copyRecords writes records until the log's end, or with follow until ctx ends.
func (f *exportFlags) copyRecords(ctx context.Context, source auditSource, out sink) error {
	for failures := 0; ; failures++ {
		before := out.Next()
		err := f.copyStream(ctx, source, out)
		if !f.follow || ctx.Err() != nil || !lostDaemon(err) {
			return err
		}
		if out.Next() > before || err == nil {
			failures = 0
		}
		if failures >= mostFailures {
			return err
		}
		if err := awaitDaemon(ctx, source); err != nil {
			return err
		}
	}
}

// writeError is a failure of the export's own side.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

// lostDaemon: the records ended, or broke off, on the daemon's side.
func lostDaemon(err error) bool {
	_, ours := errors.AsType[writeError](err)
	return !ours && (err == nil || client.StatusOf(err) == 0)
}

// copyStream copies one stream from the source. Records are committed when no other is
// waiting, and every megabyte.
func (f *exportFlags) copyStream(ctx context.Context, source auditSource, out sink) error {
	from := max(out.Next(), f.from)
	if from > 0 && out.Next() > 0 {
		from-- // the record before is compared: is it the same log?
	}
	type read struct {
		record audit.Record
		err    error
	}
	records := make(chan read, 256)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(records)
		for r, err := range source.stream(ctx, from, f.follow) {
			select {
			case records <- read{r, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		if len(records) == 0 {
			if err := out.Commit(); err != nil {
				return writeError{err}
			}
		}
		got, more := <-records
		if !more || got.err != nil {
			return got.err
		}
		err := out.Continues(got.record)
		if err == nil && got.record.Seq >= out.Next() {
			err = out.Write(got.record)
		}
		if err != nil {
			return writeError{err}
		}
	}
}

// awaitDaemon waits until a daemon answers again.
func awaitDaemon(ctx context.Context, source auditSource) error {
	d, ok := source.(daemonLog)
	if !ok {
		return nil
	}
	pause, said := 100*time.Millisecond, false
	for {
		if _, err := d.client.Version(ctx); err == nil {
			return nil
		}
		if !said {
			fmt.Fprintln(os.Stderr, "cofferdam: the daemon has ended; the export waits for the next one")
			said = true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// streamSink writes to standard output.
type streamSink struct {
	w      *bufio.Writer
	format export.Format
	next   uint64
}

func (s *streamSink) Write(r audit.Record) error {
	line, err := export.Line(s.format, r)
	if err != nil {
		return err
	}
	s.next = r.Seq + 1
	_, err = s.w.Write(line)
	return writing(err)
}

func (s *streamSink) Commit() error { return writing(s.w.Flush()) }

func (s *streamSink) Next() uint64 { return s.next }

func (*streamSink) Continues(audit.Record) error { return nil }

func (s *streamSink) Close() error { return s.Commit() }

func writing(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("the export can't go on writing: %w", err)
}
