package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newAuditVerify() *cobra.Command {
	var files auditFiles
	var kept string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that no record was changed, removed or added unnoticed",
		Long: `Reads the log's files and compares every record with the signed log checkpoints. It
needs no daemon and no network: a copy of the directory and the public key are
enough. Give the key that you kept (--key), and a log checkpoint that you kept
(--checkpoint). Without them it can't exclude that whoever has the private key wrote
the whole log anew, and it says so.

The exit code is 0 if nothing is wrong, 1 if the log is damaged (the first bad
record is named), 2 for bad input.`,
		Example: `  cofferdam audit verify
  cofferdam audit verify --dir copy/audit --key cofferdam.pub --checkpoint kept.txt
  cofferdam audit verify --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return verifyLog(cmd.Context(), files, kept) },
	}
	files.registerFlags(cmd)
	cmd.Flags().StringVar(&kept, "checkpoint", "", "a file of log checkpoints that you kept")
	return cmd
}

func verifyLog(ctx context.Context, files auditFiles, kept string) error {
	dir, err := files.directory()
	if err != nil {
		return err
	}
	var options audit.VerifyOptions
	if options.Keys, err = files.readKeys(); err != nil {
		return err
	}
	if kept != "" {
		if options.Kept, err = os.ReadFile(kept); err != nil {
			return fault.Wrap(fault.ErrInvalid, err, "the kept log checkpoint can't be read")
		}
	}
	line := ui.NewLine(os.Stderr)
	options.Progress = ui.Often(func(read, all int64) { line.Show(fmt.Sprintf("reading the log: %d%% of %d MB", 100*read/all, all>>20)) })
	verdict, err := audit.Verify(ctx, dir, options)
	line.Clear()
	if err != nil {
		return err
	}
	err = writeAnswer(verdict, files.json, func(w io.Writer, v audit.Verdict) error {
		_, err := io.WriteString(w, verdictText(v, time.Now()))
		return err
	})
	if err == nil && !verdict.Sound {
		err = &exitError{code: exitFailure}
	}
	return err
}

// verdictText is a verdict for a person.
func verdictText(v audit.Verdict, now time.Time) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-12s %s\n", name, ui.Printable(fmt.Sprintf(format, args...)))
	}
	name := "The log"
	if v.Origin != "" {
		name += " " + ui.Printable(v.Origin)
	}
	if v.Sound {
		fmt.Fprintf(&b, "%s is sound.\n", name)
	} else {
		fmt.Fprintf(&b, "%s is DAMAGED.\n", name)
	}
	for _, p := range v.Problems {
		row("wrong", "%s", problemText(p))
	}
	row("records", "%s", recordsText(v))
	if v.Checkpoints > 0 {
		row("checkpoints", "%d; the last covers %s and was made at %s", v.Checkpoints, recordsOf(v.Last.Size), v.Last.Time.Local().Format(time.DateTime))
	}
	if len(v.Kept) > 0 {
		row("yours", "%s", keptText(v.Kept, v.Sound))
	}
	if v.Personal+v.Erased > 0 {
		row("personal", "the data of %s are as they were, those of %d were erased on record", ui.Plural(int(v.Personal), "record", "records"), v.Erased)
	}
	if v.Published != nil {
		for _, t := range v.Published.Targets {
			row("published", "not proved, for nobody signs what says so: %s", t.Text(v.Last.Size, now))
		}
	}
	for _, n := range v.Notes {
		row("note", "%s", n)
	}
	for _, k := range v.Keys {
		row("key", "%s (%s)", k, map[string]string{"given": "that you gave, or vouched for by it", "log": "that lay with the log"}[v.KeyFrom])
	}
	b.WriteString("This can't exclude all:\n")
	for _, l := range v.CannotExclude {
		fmt.Fprintf(&b, "  - %s\n", l)
	}
	return b.String()
}

// keptText tells of the checkpoints that somebody kept and that the log still has, which may be as many
// as there are. Of a damaged log it says no more than that what they cover is as it was.
func keptText(kept []audit.Milestone, sound bool) string {
	sizes := make([]uint64, 0, len(kept))
	for _, k := range kept {
		sizes = append(sizes, k.Size)
	}
	least, most := slices.Min(sizes), slices.Max(sizes)
	text, since := "the checkpoint of "+recordsOf(most)+" that you kept", "then"
	if len(kept) > 1 {
		text, since = fmt.Sprintf("%d checkpoints that you kept, of %d to %s", len(kept), least, recordsOf(most)), "each of them"
	}
	if !sound {
		return text + ": " + ui.Noun(int(most), "the first record is", fmt.Sprintf("the first %d records are", most)) + " as then"
	}
	return text + ": since " + since + " the log has only grown"
}

func recordsOf(n uint64) string { return fmt.Sprintf("%d %s", n, ui.Noun(int(n), "record", "records")) }

func recordsText(v audit.Verdict) string {
	text := fmt.Sprintf("%d read in order, %d of them covered by a checkpoint", v.Records-v.Elsewhere, v.Covered-min(v.Covered, v.Elsewhere))
	if v.Sealed > 0 {
		text += fmt.Sprintf(", %d sealed", v.Sealed)
	}
	if v.Elsewhere > 0 {
		text += fmt.Sprintf("; %d are sealed and elsewhere", v.Elsewhere)
	}
	return text
}

func problemText(p audit.Problem) string {
	if p.File == "" {
		return p.What
	}
	return fmt.Sprintf("%s (%s, at byte %d)", p.What, p.File, p.Offset)
}
