package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newApprovalsWatch() *cobra.Command {
	var since uint64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Tell what happens in the queue, as it happens",
		Long: `Writes a line for each event: a request is asked, joined, approved, denied, revoked,
superseded, or expires. Ctrl-C ends it. Each event has a number; --since N begins
after that one, and --since 0 with the first event that is kept. With --json each
event is a line of JSON with the whole request as it is now.`,
		Example: "  cofferdam approvals watch\n  cofferdam approvals watch --json --since 0 | jq -r .event",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			var from *uint64
			if cmd.Flags().Changed("since") {
				from = &since
			}
			return watchApprovals(ctx, from, asJSON)
		},
	}
	cmd.Flags().Uint64Var(&since, "since", 0, "begin after the event with this number")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON lines")
	incomplete(cmd, "since")
	return cmd
}

// watchApprovals goes on over an end of the daemon: it starts one again, and
// resumes after the last event that it told.
func watchApprovals(ctx context.Context, from *uint64, asJSON bool) error {
	for {
		c, err := connectDaemon(ctx)
		if err != nil {
			return endOfWatch(ctx, err)
		}
		seen := false
		for event, err := range c.WatchApprovals(ctx, from) {
			if errors.Is(err, client.ErrLost) && from != nil && seen {
				break
			}
			if err != nil {
				return endOfWatch(ctx, err)
			}
			if err := writeEvent(event, asJSON); err != nil {
				return err
			}
			from, seen = &event.Number, true
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// endOfWatch: Ctrl-C is how a person ends it, and no failure.
func endOfWatch(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func writeEvent(e api.ApprovalEvent, asJSON bool) error {
	if asJSON {
		return ui.WriteJSONLine(os.Stdout, e)
	}
	r, err := readRequest(e.Request)
	if err != nil {
		return err
	}
	about := strings.Join(notesOf(r), "; ")
	if about != "" {
		about = "  (" + about + ")"
	}
	_, err = fmt.Fprintf(os.Stdout, "%s  %-10s  %s  %s  %s%s\n", e.At.Local().Format(time.DateTime), ui.Printable(e.Event), ui.Printable(r.ID),
		ui.Printable(releaseText(r)), ui.Printable(askedBy(r)), ui.Printable(about))
	return err
}
