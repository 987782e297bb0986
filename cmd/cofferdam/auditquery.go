package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// queryLimit is how many records a query shows if it is not said.
const queryLimit = 1000

// queryFlags are what a query was asked for.
type queryFlags struct {
	query        api.AuditQuery
	where        map[string]*[]string
	since, until string
	after        int64
	exit         int
	log          copyFlags
	json         bool
}

func newAuditQuery() *cobra.Command {
	flags := queryFlags{where: map[string]*[]string{}}
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Find records by any field",
		Long: `Lists the records that match all flags, the oldest first. You may repeat a flag: then
any of its values matches. A value that ends in "*" matches all that begin so. --text
searches every text of a record and ignores case.

If more than --limit records match, the first are shown; --after SEQ continues after
the last one that you saw.`,
		Example: `  cofferdam audit query --package rich --since 7d
  cofferdam audit query --outcome blocked --rule 'blocked_packages.*'
  cofferdam audit query --sha256 73191c47aaa79da394e8fee2dbc2ec827432cab56311122c9e47abf79e390f62 --json
  cofferdam audit query --text "crypto" --run nightly-42`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("exit") {
				flags.query.Exit = &flags.exit
			}
			return flags.runQuery(cmd.Context(), time.Now())
		},
	}
	set := cmd.Flags()
	for _, field := range index.Fields() {
		flags.where[field.Name] = set.StringArray(field.Name, nil, field.What)
	}
	set.StringVar(&flags.query.Text, "text", "", "somewhere in the record")
	set.StringVar(&flags.since, "since", "", "only records since then: 7d, 12h, 2026-11-01, or a time of RFC 3339")
	set.StringVar(&flags.until, "until", "", "only records before then")
	set.Int64Var(&flags.after, "after", -1, "only records after this number")
	set.IntVar(&flags.exit, "exit", 0, "only commands that ended with this code")
	set.StringSliceVar(&flags.query.Flags, "marked", nil, "only records that are claimed, guest, unaccounted, brought or alarm; may be repeated")
	set.IntVar(&flags.query.Limit, "limit", queryLimit, "how many records to show; 0 shows all")
	flags.log.registerFlags(cmd)
	set.BoolVar(&flags.json, "json", false, "write the records as JSON lines")
	registerCompletion(cmd, "run", completeRuns)
	registerCompletion(cmd, "sandbox", completeSandboxes)
	registerCompletion(cmd, "kind", completeWords(listRecordKinds()...))
	registerCompletion(cmd, "outcome", completeWords(outcomes()...))
	registerCompletion(cmd, "ecosystem", completeWords(ecosystemNames()...))
	registerCompletion(cmd, "marked", completeWords("claimed", "guest", "unaccounted", "brought", "alarm"))
	incomplete(cmd, "text", "since", "until", "after", "exit", "limit", "package", "version", "sha256", "rule", "source", "host")
	return cmd
}

func (f *queryFlags) runQuery(ctx context.Context, now time.Time) (err error) {
	q := f.query
	q.Where = map[string][]string{}
	for name, values := range f.where {
		if len(*values) > 0 {
			q.Where[name] = *values
		}
	}
	if q.Since, err = parseTime("since", f.since, now); err != nil {
		return err
	}
	if q.Until, err = parseTime("until", f.until, now); err != nil {
		return err
	}
	q.From = uint64(max(0, f.after+1))
	limit := q.Limit
	if limit > 0 {
		q.Limit++ // one more tells whether there are more
	}
	source, err := openAuditSource(ctx, f.log)
	if err != nil {
		return err
	}
	defer func() { err = withClose(err, source.close()) }()
	return f.listRecords(source.queryRecords(ctx, q), limit)
}

// listRecords shows at most limit records, and says whether there are more.
func (f *queryFlags) listRecords(records iter.Seq2[audit.Record, error], limit int) error {
	rows, last, n := [][]string{{"RECORD", "TIME", "RUN", "OUTCOME", "WHAT", "WHY"}}, uint64(0), 0
	for r, err := range records {
		if err != nil {
			return err
		}
		if n++; limit > 0 && n > limit {
			defer fmt.Fprintf(os.Stderr, "cofferdam: there are more; --after %d goes on\n", last)
			break
		}
		last = r.Seq
		if !f.json {
			rows = append(rows, append([]string{strconv.FormatUint(r.Seq, 10)}, recordRow(r)...))
		} else if err := ui.WriteJSONLine(os.Stdout, r); err != nil {
			return err
		}
	}
	if f.json {
		return nil
	}
	if n == 0 {
		sayNoRecord()
	}
	return ui.WriteTable(os.Stdout, rows)
}
