package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

func newAudit() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Read the record of what was asked for and decided",
		GroupID: groupReview,
		Example: "  cofferdam audit list --run nightly-42\n  cofferdam audit report not-in-lockfile --since 7d\n  cofferdam audit query --package rich --json",
	}
	cmd.AddCommand(newAuditList(), newAuditReport(), newAuditQuery(), newAuditExport())
	cmd.AddCommand(newAuditVerify(), newAuditProve(), newAuditCheckProof(), newAuditKey(), newAuditSeal(), newAuditErase(), newAuditSelftest())
	return cmd
}

// auditFlags are what `audit list` was asked for.
type auditFlags struct {
	filter client.RecordFilter
	json   bool
}

func newAuditList() *cobra.Command {
	var flags auditFlags
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List records, oldest first",
		Long: `Lists the records of the log, the oldest first. Packages and agents wrote some of
the text in them; characters that a terminal would take for instructions are shown as
escapes. With --json each record is one line, with the personal data that the log
keeps next to its lines. The table leaves out the many records of pages and metadata
that were only shown; --outcome shown lists them.

Outcomes: ` + strings.Join(outcomes(), ", ") + `.
Kinds: ` + strings.Join(kinds(), ", ") + `.`,
		Example: `  cofferdam audit list --run nightly-42
  cofferdam audit list --outcome blocked --outcome withheld
  cofferdam audit list --kind package --json | jq -r .package_name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return flags.list(cmd.Context())
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.filter.Run, "run", "", "only of this run")
	set.StringVar(&flags.filter.Sandbox, "sandbox", "", "only of this sandbox")
	set.StringSliceVar(&flags.filter.Kinds, "kind", nil, "only of this kind; may be repeated")
	set.StringSliceVar(&flags.filter.Outcomes, "outcome", nil, "only with this outcome; may be repeated")
	set.Uint64Var(&flags.filter.From, "from", 0, "only from this sequence number on")
	set.BoolVar(&flags.json, "json", false, "write the records as JSON lines")
	completeAudit(cmd)
	return cmd
}

func outcomes() []string {
	return texts(
		audit.Served, audit.Aborted, audit.Installed, audit.Blocked, audit.Withheld, audit.Pending, audit.Failed, audit.Started, audit.Finished,
		audit.Exceeded, audit.Alarm, audit.Approved, audit.Denied, audit.Expired, audit.Superseded, audit.Planned, audit.Shown, audit.Frozen, audit.Thawed,
		audit.Sealed, audit.Erased, audit.Rotated,
	)
}

func kinds() []string {
	return texts(
		audit.KindPackage, audit.KindCommand, audit.KindSandbox, audit.KindNetwork, audit.KindDaemon, audit.KindBuild, audit.KindApproval, audit.KindLog,
	)
}

func texts[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

func (f auditFlags) check() error {
	for _, o := range f.filter.Outcomes {
		if !slices.Contains(outcomes(), o) {
			return fault.Invalid("--outcome %q is not one of %s", o, strings.Join(outcomes(), ", "))
		}
	}
	for _, k := range f.filter.Kinds {
		if !slices.Contains(kinds(), k) {
			return fault.Invalid("--kind %q is not one of %s", k, strings.Join(kinds(), ", "))
		}
	}
	return nil
}

func (f auditFlags) list(ctx context.Context) error {
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	rows, leftOut := [][]string{{"TIME", "RUN", "OUTCOME", "WHAT", "WHY"}}, 0
	for line, err := range c.Records(ctx, f.filter) {
		if err != nil {
			return err
		}
		if f.json {
			if _, err := fmt.Fprintln(os.Stdout, strings.TrimSpace(printableJSON(line))); err != nil {
				return err
			}
			continue
		}
		var record audit.Record
		if err := json.Unmarshal(line, &record); err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		if record.Outcome == audit.Shown && len(f.filter.Outcomes) == 0 {
			leftOut++
			continue
		}
		rows = append(rows, recordRow(record))
	}
	if f.json {
		return nil
	}
	if leftOut > 0 {
		fmt.Fprintf(os.Stderr, "%d records of pages and metadata that were shown are left out; --outcome shown lists them\n", leftOut)
	}
	return writeTable(os.Stdout, rows)
}

func recordRow(r audit.Record) []string {
	return []string{r.Time.Local().Format(time.DateTime), r.Run, string(r.Outcome), recordWhat(r), recordWhy(r)}
}

func recordWhat(r audit.Record) string {
	switch {
	case r.Package != "":
		what := r.Ecosystem + " " + r.Package
		if r.InstalledVersion != "" {
			what += " " + r.InstalledVersion
		}
		return what
	case len(r.Command) > 0:
		return clip("$ "+strings.Join(r.Command, " "), 60)
	case r.Detail["name"] != "":
		return string(r.Kind) + " " + r.Detail["name"]
	case r.Sandbox != "":
		return string(r.Kind) + " " + r.Sandbox
	}
	return string(r.Kind)
}

func rangeText(w audit.WithheldRange) string {
	if w.From == w.To {
		return w.From
	}
	return w.From + " .. " + w.To
}

// withheldText counts files where an older version's other files were let in.
func withheldText(w audit.WithheldRange) string {
	n, unit := w.Versions, "version"
	if n == 0 {
		n, unit = w.Files, "file"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%s: %s (%d %s) [%s];", rangeText(w), w.Reason, n, unit, w.Rule)
}

// missed leaves out the files of versions that were let in by other files,
// unless there is nothing else to tell.
func missed(ranges []audit.WithheldRange) []audit.WithheldRange {
	whole := slices.DeleteFunc(slices.Clone(ranges), func(w audit.WithheldRange) bool { return w.Versions == 0 })
	if len(whole) == 0 {
		return ranges
	}
	return whole
}

func recordWhy(r audit.Record) string {
	var parts []string
	if r.Reason != "" && len(r.Withheld) == 0 { // the ranges say it
		parts = append(parts, r.Reason)
	}
	if r.Outcome == audit.Shown {
		parts = append(parts, cmp.Or(r.File, "the page"), cmp.Or(r.SHA256, r.Detail["index_digest"]))
	}
	for _, w := range missed(r.Withheld) {
		parts = append(parts, withheldText(w))
	}
	if r.Rule != "" && len(r.Withheld) == 0 {
		parts = append(parts, "["+r.Rule+"]")
	}
	if r.Exit != nil {
		parts = append(parts, "exit "+strconv.Itoa(*r.Exit))
	}
	if t := times(r.Count); t != "" {
		parts = append(parts, t)
	}
	return strings.TrimSuffix(strings.Join(parts, " "), ";")
}

// clip shortens what would fill the screen.
func clip(s string, most int) string {
	runes := []rune(s)
	if len(runes) <= most {
		return s
	}
	return string(runes[:most-3]) + "..."
}
