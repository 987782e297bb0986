package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
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
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
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
	register(cmd, "since", cobra.NoFileCompletions)
	return cmd
}

// watchApprovals goes on over an end of the daemon: it starts one again, and
// resumes after the last event that it told.
func watchApprovals(ctx context.Context, from *uint64, asJSON bool) error {
	for {
		c, err := connect(ctx)
		if err != nil {
			return endOfWatch(ctx, err)
		}
		told := false
		for event, err := range c.WatchApprovals(ctx, from) {
			if errors.Is(err, client.ErrLost) && from != nil && told {
				break
			}
			if err != nil {
				return endOfWatch(ctx, err)
			}
			if err := writeEvent(event, asJSON); err != nil {
				return err
			}
			from, told = &event.Number, true
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
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		_, err = fmt.Fprintln(os.Stdout, printableJSON(line))
		return err
	}
	r, err := readRequest(e.Request)
	if err != nil {
		return err
	}
	about := strings.Join(notesOf(r), "; ")
	if about != "" {
		about = "  (" + about + ")"
	}
	_, err = fmt.Fprintf(os.Stdout, "%s  %-10s  %s  %s  %s%s\n", e.At.Local().Format(time.DateTime), printable(e.Event), printable(r.ID),
		printable(releaseText(r)), printable(askedBy(r)), printable(about))
	return err
}
