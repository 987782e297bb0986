package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
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
that were only shown, and of questions to upstreams; --outcome asked,shown lists them.

Outcomes: ` + strings.Join(outcomes(), ", ") + `.
Kinds: ` + strings.Join(listRecordKinds(), ", ") + `.`,
		Example: `  cofferdam audit list --run nightly-42
  cofferdam audit list --outcome blocked --outcome withheld
  cofferdam audit list --alarms
  cofferdam audit list --token tk_7f3k2m --outcome blocked,withheld,failed
  cofferdam audit list --kind package --json | jq -r .package_name`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.checkFlags(); err != nil {
				return err
			}
			return flags.listRecords(cmd.Context())
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.filter.Run, "run", "", "only of this run")
	set.StringVar(&flags.filter.Sandbox, "sandbox", "", "only of this sandbox")
	set.StringVar(&flags.filter.User, "user", "", "only of runs of this user of the host")
	set.StringVar(&flags.filter.Token, "token", "", "only of runs of the token with this id")
	set.StringSliceVar(&flags.filter.Kinds, "kind", nil, "only of this kind; may be repeated")
	set.StringSliceVar(&flags.filter.Outcomes, "outcome", nil, "only with this outcome; may be repeated")
	set.BoolVar(&flags.filter.Alarms, "alarms", false, "only alarms, whatever their outcome")
	set.Uint64Var(&flags.filter.From, "from", 0, "only from this sequence number on")
	set.BoolVar(&flags.json, "json", false, "write the records as JSON lines")
	registerCompletion(cmd, "run", completeRuns)
	registerCompletion(cmd, "sandbox", completeSandboxes)
	registerCompletion(cmd, "kind", completeWords(listRecordKinds()...))
	registerCompletion(cmd, "outcome", completeWords(outcomes()...))
	incomplete(cmd, "from", "user", "token")
	return cmd
}

func (f auditFlags) checkFlags() error {
	for _, o := range f.filter.Outcomes {
		if !slices.Contains(outcomes(), o) {
			return fault.Invalid("--outcome %q is not one of %s", o, strings.Join(outcomes(), ", "))
		}
	}
	for _, k := range f.filter.Kinds {
		if !slices.Contains(listRecordKinds(), k) {
			return fault.Invalid("--kind %q is not one of %s", k, strings.Join(listRecordKinds(), ", "))
		}
	}
	return nil
}

// sayNoRecord tells an empty table from one that could not be asked for.
func sayNoRecord() { fmt.Fprintln(os.Stderr, "cofferdam: no record matches") }

func (f auditFlags) listRecords(ctx context.Context) error {
	c, err := connectDaemon(ctx)
	if err != nil {
		return err
	}
	rows, leftOut := [][]string{{"TIME", "RUN", "OUTCOME", "WHAT", "WHY"}}, 0
	for line, err := range c.Records(ctx, f.filter) {
		if err != nil {
			return err
		}
		if f.json {
			if err := ui.WriteJSONLine(os.Stdout, line); err != nil {
				return err
			}
			continue
		}
		var record audit.Record
		if err := json.Unmarshal(line, &record); err != nil {
			return fmt.Errorf("read a record: %w", err)
		}
		if (record.Outcome == audit.Shown || record.Outcome == audit.Asked) && len(f.filter.Outcomes) == 0 {
			leftOut++
			continue
		}
		rows = append(rows, recordRow(record))
	}
	if f.json {
		return nil
	}
	if leftOut > 0 {
		fmt.Fprintf(os.Stderr, "%s of what upstreams were asked, and of pages and metadata that were shown, left out; --outcome asked,shown lists them\n", ui.Plural(leftOut, "record", "records"))
	}
	if len(rows) == 1 && leftOut == 0 {
		sayNoRecord()
	}
	return ui.WriteTable(os.Stdout, rows)
}
