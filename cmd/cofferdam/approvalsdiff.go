package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// diffTimeout is how long two releases may take to be read.
const diffTimeout = 90 * time.Second

func newApprovalsDiff() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff ID [PATH]",
		Short: "Show a release's files, and what differs from the one that was approved before",
		Long: `Shows how a release that was asked for differs from the last one of its package that
was approved here: the files that are new, gone or changed, with their sizes in bytes, those
first that run by themselves as far as their names tell. With PATH it shows how that file
differs or, where there is nothing to compare with, all that is in it.

The files are those that the gateway has verified and keeps; nothing is fetched, and nothing
of them runs. Binary files are named and not shown. Of a text of more than 1 MiB the beginning
is compared, and of more than 2,000 files the first are listed. Their publishers wrote the text in
it; characters that a terminal would take for instructions are shown as escapes.`,
		Example: "  cofferdam approvals diff ap-k3m7qx\n  cofferdam approvals diff ap-k3m7qx setup.py",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, _, err := approval.ParseAnswerID(args[0])
			if err != nil {
				return err
			}
			path := ""
			if len(args) == 2 {
				path = args[1]
			}
			var diff api.ApprovalDiff
			err = withDaemon(cmd.Context(), diffTimeout, func(ctx context.Context, c *client.Client) (err error) {
				diff, err = client.DiffApproval(ctx, c, id, path, file)
				return err
			})
			if err != nil {
				return err
			}
			return writeAnswer(diff, asJSON, func(w io.Writer, d api.ApprovalDiff) error { return writeDiff(w, id, d) })
		},
		ValidArgsFunction: completeFirst(completeRequests()),
	}
	cmd.Flags().StringVar(&file, "file", "", "the file of the release that is meant, if there are several")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	incomplete(cmd, "file")
	return cmd
}

// canDiffer tells a request of whose release something can be shown.
func canDiffer(r approval.Request) bool {
	if r.Kind != "" || r.IsTree() {
		return false
	}
	for _, f := range r.Files {
		for _, d := range f.Digests {
			if strings.HasPrefix(d, "sha256:") && r.Evidence.Inside != nil { // the bytes were here
				return true
			}
		}
	}
	return false
}

func writeDiff(w io.Writer, id string, d api.ApprovalDiff) error {
	s := &ui.Sheet{}
	s.Head(id, d.File)
	if d.Against == "" {
		s.Line("compared with", "nothing: %s", d.Note)
	} else {
		s.Line("compared with", "%s, approved as %s", d.Against, d.AgainstRequest)
	}
	if d.Text != nil {
		writeText(s, *d.Text)
	} else {
		listChanges(s, id, d)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// listChanges lists the files, of which the names are the publisher's.
func listChanges(s *ui.Sheet, id string, d api.ApprovalDiff) {
	if d.Against == "" {
		s.Line("files", "%d", d.Total)
	} else {
		s.Line("files", "%d differ, %d are the same", d.Total, d.Same)
	}
	if more := d.Total - len(d.Changes); more > 0 {
		s.Line("", "AND %d MORE than are listed", more)
	}
	s.Raw("\n")
	var rows strings.Builder
	_ = tableOf([]string{"FILE", "WAS", "IS", "NOTE"}, changeRow)(&rows, d.Changes) // a Builder takes all
	s.Raw(rows.String())
	if len(d.Changes) > 0 {
		s.Raw("\n  cofferdam approvals diff " + ui.Printable(id) + " PATH shows one of them\n")
	}
}

func changeRow(c api.FileChange) []string {
	size := func(n int64) string {
		if n < 0 {
			return "-"
		}
		return fmt.Sprint(n)
	}
	var notes []string
	switch {
	case c.Was < 0:
		notes = append(notes, "new")
	case c.Is < 0:
		notes = append(notes, "gone")
	}
	if c.Runs != "" {
		notes = append(notes, "RUNS: "+c.Runs)
	}
	if c.Native {
		notes = append(notes, "MACHINE CODE")
	}
	return []string{c.Path, size(c.Was), size(c.Is), strings.Join(notes, "; ")}
}

func writeText(s *ui.Sheet, t api.FileText) {
	switch {
	case t.Is < 0:
		s.Line("file", "%s (%d bytes) is gone", t.Path, t.Was)
	case t.Was < 0:
		s.Line("file", "%s (%d bytes)", t.Path, t.Is)
	default:
		s.Line("file", "%s (%d bytes, before %d)", t.Path, t.Is, t.Was)
	}
	if t.Cut {
		s.Line("NOT WHOLE", "of a text of more than 1 MiB only the beginning is here")
	}
	switch {
	case t.Binary:
		s.Line("binary", "it is no text, and is not shown")
	case t.Diff == "" && t.Was >= 0:
		s.Line("the same", "in both, as far as they were compared")
	default: // each of its lines begins with a sign, so that none passes for one of ours
		s.Raw("\n" + ui.PrintableText(t.Diff))
	}
}
