package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

func newClock() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "clock",
		Short:   "Show what time it is, or say that the host's clock is right",
		GroupID: groupHost,
		Example: "  cofferdam clock show\n  cofferdam clock accept",
	}
	cmd.AddCommand(newClockShow(), newClockAccept())
	return cmd
}

func newClockShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what time it is, and whether the host's clock has jumped",
		Long: `Shows the time that Cofferdam goes by, and what the host's clock says. The two differ
after a jump: somebody, or something, set the host's clock, and the time since the
machine's start says otherwise. Until the clock is back or accepted, what is old
enough by only one of the two waits for a person, and what has expired by one of them
has expired.`,
		Example: "  cofferdam clock show\n  cofferdam clock show --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now, err := ask(cmd, (*client.Client).Clock)
			if err != nil {
				return err
			}
			return write(now, asJSON, writeClock)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newClockAccept() *cobra.Command {
	return &cobra.Command{
		Use:   "accept",
		Short: "Say that the host's clock is right after a jump",
		Long: `Makes Cofferdam believe the host's clock again after a jump. Look at the clock first:
it decides how old every release is. The log records who did this. If the clock is
wrong, set it right instead; that ends the jump by itself.`,
		Example: "  cofferdam clock accept",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onThisHost(cmd.Context(), "clock accept"); err != nil {
				return err
			}
			before, err := ask(cmd, (*client.Client).AcceptClock)
			switch {
			case err != nil:
				return err
			case !before.Jumped:
				_, err = fmt.Fprintln(os.Stdout, "The host's clock was believed already.")
			default:
				_, err = fmt.Fprintf(os.Stdout, "The time is %s, as the host's clock says; it was taken for %s.\n", clockTime(before.Host), clockTime(before.Time))
			}
			return err
		},
	}
}

func writeClock(to io.Writer, now api.Clock) error {
	if !now.Jumped {
		_, err := fmt.Fprintf(to, "%s\nThe host's clock is believed.\n", clockTime(now.Time))
		return err
	}
	where := "ahead"
	off := time.Duration(now.AheadSeconds) * time.Second
	if off < 0 {
		where, off = "behind", -off
	}
	_, err := fmt.Fprintf(to, `%s
The host's clock has jumped: it says %s, which is %s %s.
Set it right, or say that it is: cofferdam clock accept
`, clockTime(now.Time), clockTime(now.Host), off, where)
	return err
}

func clockTime(at time.Time) string { return at.Local().Format(time.DateTime) }
