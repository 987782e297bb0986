package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/export"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// reportLimit is how many rows a report shows if it is not said.
const reportLimit = 200

// reportFlags are what a report was asked for.
type reportFlags struct {
	question     api.AuditQuestion
	since, until string
	locks        []string
	log          copyFlags
	json, csv    bool
	failIfAny    bool
}

func newAuditReport() *cobra.Command {
	var flags reportFlags
	var names, list []string
	for _, n := range report.Names() {
		names = append(names, n.Name+"\t"+n.What)
		list = append(list, fmt.Sprintf("  %-18s %s", n.Name, n.What))
	}
	cmd := &cobra.Command{
		Use:   "report NAME [RUN]",
		Short: "Answer an auditor's question",
		Long: `Answers one question about the log. A report says what was asked and over which
records, says what was proved of the log before it was read, shows what it found, and
ends with a verdict. Of a log that is not as it was written no report is made. The reports find:

` + strings.Join(list, "\n") + `

not-in-lockfile compares with the lockfiles that each run was given, or with those
of --lockfile. busy-runs judges a run by its policy's other runs, if there are at least
--min-runs of them. A run is busy if it has more install events (files served, packages
installed) than 95 of 100 of them, and more than twice their median. approvals and run
only list; what they find is no fault.

Packages and agents wrote some of the text in records. On a terminal, characters that
it would take for instructions are shown as escapes. In CSV, no cell begins like a
formula.

The exit code is 0. With --fail-if-any it is 1 if something was found, or could not
be judged (except for busy-runs, where a policy without a history is normal).`,
		Example: `  cofferdam audit report not-in-lockfile --since 7d
  cofferdam audit report off-allowlist --fail-if-any
  cofferdam audit report run nightly-42
  cofferdam audit report unaccounted --log copy/audit --csv`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeWords(names...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.takeRun(cmd, args); err != nil {
				return err
			}
			if flags.json && flags.csv {
				return usageError(cmd, "--json and --csv are two forms; choose one")
			}
			return flags.runReport(cmd.Context(), args[0], time.Now())
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.since, "since", "", "only records since then: 7d, 12h, 2026-11-01, or a time of RFC 3339")
	set.StringVar(&flags.until, "until", "", "only records before then")
	set.StringVar(&flags.question.Run, "run", "", "only of this run")
	set.StringVar(&flags.question.Policy, "policy", "", `only under the policy with this digest ("sha256:ab*": that begins so)`)
	set.StringVar(&flags.question.User, "user", "", "only of runs of this user of the host")
	set.StringVar(&flags.question.Token, "token", "", "only of runs of the token with this id")
	set.StringArrayVar(&flags.locks, "lockfile", nil, "compare with this lockfile, not with the runs' own; may be repeated")
	set.IntVar(&flags.question.MinRuns, "min-runs", 0, "busy-runs: how many other runs a policy needs (default 10)")
	set.IntVar(&flags.question.Limit, "limit", reportLimit, "how many rows to show; 0 shows all")
	flags.log.registerFlags(cmd)
	set.BoolVar(&flags.json, "json", false, "write JSON; of a run, with all its records")
	set.BoolVar(&flags.csv, "csv", false, "write the table as CSV; of a run, all its records")
	set.BoolVar(&flags.failIfAny, "fail-if-any", false, "exit with 1 if something was found")
	registerCompletion(cmd, "run", completeRuns)
	incomplete(cmd, "since", "until", "policy", "user", "token", "min-runs", "limit")
	return cmd
}

// takeRun takes the run that the report run is about, from its argument or from its flag.
func (f *reportFlags) takeRun(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		if args[0] != "run" || f.question.Run != "" {
			return usageError(cmd, "only the report run is followed by a run, and once")
		}
		f.question.Run = args[1]
	}
	if args[0] == "run" && f.question.Run == "" {
		return usageError(cmd, "the report run is about one run; name it, as in: cofferdam audit report run nightly-42; %s lists the runs", f.log.listOfRuns())
	}
	return nil
}

func (f *reportFlags) runReport(ctx context.Context, name string, now time.Time) (err error) {
	q := f.question
	if q.Since, err = parseTime("since", f.since, now); err != nil {
		return err
	}
	if q.Until, err = parseTime("until", f.until, now); err != nil {
		return err
	}
	for _, path := range f.locks {
		data, err := readDeciding("lockfile", path, lockfile.MaxBytes)
		if err != nil {
			return err
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		q.Lockfiles = append(q.Lockfiles, api.Lockfile{Source: absolute, Document: data})
	}
	source, err := openAuditSource(ctx, f.log)
	if err != nil {
		return err
	}
	defer func() { err = withClose(err, source.close()) }()
	answer, err := source.report(ctx, name, q)
	if errors.Is(err, fault.ErrNotFound) && name == "run" && f.log.dir != "" {
		return fmt.Errorf("%w; %s lists the runs", err, f.log.listOfRuns())
	}
	if err != nil {
		return err
	}
	if err := f.writeReport(os.Stdout, answer); err != nil {
		return err
	}
	if f.failIfAny && (answer.Found > 0 || answer.Unjudged > 0 && name != "busy-runs") {
		return &exitError{code: exitFailure}
	}
	return nil
}

func (f *reportFlags) writeReport(w io.Writer, r api.AuditReport) error {
	switch {
	case f.json:
		return ui.WriteJSON(w, r)
	case f.csv && r.Records != nil:
		return writeRecordsCSV(w, r.Records)
	case f.csv:
		return export.Table(w, tableRows(r.Tables[0], strings.ToLower))
	}
	return writeReport(w, r)
}

// writeReport writes the report for a person.
func writeReport(w io.Writer, r api.AuditReport) error {
	lines := []string{r.Asked}
	if r.Checkpoint != "" {
		lines = append(lines, "Checkpoint: "+r.Checkpoint+".")
	}
	if r.Verified != "" {
		lines = append(lines, "Verified: "+r.Verified+".")
	} else {
		lines = append(lines, "NOT VERIFIED: whoever can write the log's files can have chosen this answer; cofferdam audit verify proves the log.")
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, ui.Printable(line)); err != nil {
			return err
		}
	}
	shown := 0
	for _, t := range r.Tables {
		if len(t.Rows) == 0 {
			continue
		}
		shown += len(t.Rows)
		if _, err := fmt.Fprintf(w, "\n%s", titled(t.Title)); err != nil {
			return err
		}
		if err := ui.WriteTable(w, tableRows(t, strings.ToUpper)); err != nil {
			return err
		}
	}
	if more := r.Found - shown; more > 0 && r.Records == nil {
		if _, err := fmt.Fprintf(w, "and %d more; --limit 0 shows all\n", more); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", ui.Printable(r.Verdict))
	return err
}

func titled(title string) string {
	if title == "" {
		return ""
	}
	return ui.Printable(title) + ":\n"
}

// tableRows are a table's cells, the columns' names first. Columns that are empty
// in all rows are left out for a person, not for a program.
func tableRows(t api.AuditTable, named func(string) string) [][]string {
	var head, columns []string
	for _, c := range t.Columns {
		if named("a") == "a" || hasColumn(t, c) {
			columns, head = append(columns, c), append(head, named(c))
		}
	}
	rows := [][]string{head}
	for _, row := range t.Rows {
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = row[c]
		}
		rows = append(rows, cells)
	}
	return rows
}

func hasColumn(t api.AuditTable, column string) bool {
	for _, row := range t.Rows {
		if row[column] != "" {
			return true
		}
	}
	return false
}

// writeRecordsCSV writes a run's records.
func writeRecordsCSV(w io.Writer, lines []json.RawMessage) error {
	if _, err := w.Write(export.Head(export.CSV)); err != nil {
		return err
	}
	for _, line := range lines {
		var r audit.Record
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		text, err := export.Line(export.CSV, r)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}
