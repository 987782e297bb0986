package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// sealTimeout bounds a sealing: a segment of 64 MB takes some seconds.
const sealTimeout = 30 * time.Minute

func newAuditSeal() *cobra.Command {
	var before string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "seal --before DATE|RECORD",
		Short: "Compress old parts of the log",
		Long: `Compresses the segments of the log whose records are all older than a date, or than
a record. Nothing is deleted: the records can be read as before, and the hashes
that prove them stay. A sealed segment (a file *.jsonl.gz) may then be moved to
another place; its hashes (*.leaves) stay in the directory, and "cofferdam audit
verify" still proves the log, and says how many records are elsewhere.

A date is like 2026-11-01, 2026-11-01T12:00:00Z, or 90d for so many days ago.`,
		Example: "  cofferdam audit seal --before 90d\n  cofferdam audit seal --before 2026-06-01",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			req, err := parseBefore(before, time.Now())
			if err != nil {
				return err
			}
			return withDaemon(cmd.Context(), sealTimeout, func(ctx context.Context, c *client.Client) error {
				answer, err := c.SealAudit(ctx, req)
				if err != nil {
					return err
				}
				return writeAnswer(answer, asJSON, writeSealed)
			})
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "a date, a number of days (90d), or a record's number")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	incomplete(cmd, "before")
	return cmd
}

// parseBefore reads a date, a number of days, or a record's number.
func parseBefore(text string, now time.Time) (api.SealAudit, error) {
	if text == "" {
		return api.SealAudit{}, fault.Invalid("--before is missing: it says which records are old enough, such as 90d")
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return api.SealAudit{BeforeRecord: n}, nil
	}
	if n := len(text); n > 1 && text[n-1] == 'd' {
		if days, err := strconv.ParseUint(text[:n-1], 10, 16); err == nil {
			return api.SealAudit{BeforeTime: now.AddDate(0, 0, -int(days)).UTC()}, nil
		}
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return api.SealAudit{BeforeTime: at.UTC()}, nil
		}
	}
	return api.SealAudit{}, fault.Invalid("--before %q is neither a date such as 2026-06-01, nor days such as 90d, nor a record's number", text)
}

func writeSealed(w io.Writer, answer api.SealedAudit) error {
	if len(answer.Segments) == 0 {
		_, err := fmt.Fprintln(w, "Nothing was sealed: no closed segment has only older records.")
		return err
	}
	return tableOf([]string{"FILE", "RECORDS", "FROM", "TO", "MB BEFORE", "MB NOW"}, func(s api.SealedSegment) []string {
		return []string{
			s.File, strconv.FormatUint(s.Records, 10), strconv.FormatUint(s.First, 10), strconv.FormatUint(s.First+s.Records-1, 10),
			megabytes(s.BytesBefore), megabytes(s.BytesAfter),
		}
	})(w, answer.Segments)
}

func megabytes(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) }
