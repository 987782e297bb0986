package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newAuditErase() *cobra.Command {
	var run, record, reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "erase --run RUN | --record RECORD",
		Short: "Erase personal data from the log",
		Long: `Erases the personal data of a run's records, or of one record: who it was, the
token, the task, and what people wrote. Whose run it is is kept once for all of its
records that have nothing else of people in them, and goes with the run.

All that is kept beside the records, which have only a salted hash of it; the salt
goes too. So every proof still holds, and nobody can tell from the log what was
erased. Two records say that it was done, by whom and why. It can't be undone;
copies and backups are yours to see to.`,
		Example: "  cofferdam audit erase --run nightly-42 --reason \"request of 12 November\"\n  cofferdam audit erase --record 1204",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (run == "") == (record == "") {
				return usageError(cmd, "name either a run or a record")
			}
			req := api.EraseAudit{Run: run, Reason: reason}
			if record != "" {
				n, err := recordNumber(record)
				if err != nil {
					return err
				}
				req.Record = &n
			}
			answer, err := askFor(cmd, (*client.Client).EraseAudit, req)
			if err != nil {
				return err
			}
			return writeAnswer(answer, asJSON, func(w io.Writer, answer api.ErasedAudit) error {
				_, err := fmt.Fprintf(w, "Erased the personal data of %s, and what others of their run share with them.\n", ui.Plural(len(answer.Records), "record", "records"))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&run, "run", "", "of this run's records")
	cmd.Flags().StringVar(&record, "record", "", "of this record")
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is recorded, so keep personal data out of it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	registerCompletion(cmd, "run", completeRuns)
	incomplete(cmd, "record")
	return cmd
}
