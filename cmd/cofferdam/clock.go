package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
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
			now, err := askDaemon(cmd, (*client.Client).Clock)
			if err != nil {
				return err
			}
			return writeAnswer(now, asJSON, writeClock)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// clockSlack is how far the host's clock may be from the time that a person has seen when they accept it.
const clockSlack = 10 * time.Minute

func newClockAccept() *cobra.Command {
	var seen string
	cmd := &cobra.Command{
		Use:   "accept",
		Short: "Say that the host's clock is right after a jump",
		Long: `Makes Cofferdam believe the host's clock again after a jump. Look at the clock first:
it decides how old every release is. It shows both times and asks; where nobody can be
asked, --time names the one that somebody has seen (the host's, to ten minutes). The log
records who did this. If the clock is wrong, set it right instead; that ends the jump by
itself.`,
		Example: "  cofferdam clock accept\n  cofferdam clock accept --time '2026-11-29 10:20:00'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onThisHost(cmd.Context(), "clock accept"); err != nil {
				return err
			}
			if agreed, err := agreesToClock(cmd, seen); err != nil || !agreed {
				return err
			}
			before, err := askDaemon(cmd, (*client.Client).AcceptClock)
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
	cmd.Flags().StringVar(&seen, "time", "", "accept the host's clock only if it says this, as clock show prints it")
	incomplete(cmd, "time")
	return cmd
}

// agreesToClock tells whether somebody has seen what the host's clock says now. One that has not jumped needs nobody.
func agreesToClock(cmd *cobra.Command, seen string) (bool, error) {
	now, err := askDaemon(cmd, (*client.Client).Clock)
	if err != nil || !now.Jumped {
		return err == nil, err
	}
	if seen == "" && !ui.CanAsk() {
		return false, fault.Invalid("nobody can be asked here: the host's clock says %s; if that is right, say: cofferdam clock accept --time '%s'", clockTime(now.Host), clockTime(now.Host))
	}
	if seen == "" {
		return ui.Agrees(fmt.Sprintf("the host's clock says %s, and it is taken for %s; is the host's clock right?", clockTime(now.Host), clockTime(now.Time))), nil
	}
	at, err := time.ParseInLocation(time.DateTime, seen, time.Local)
	if err != nil {
		return false, fault.Invalid("--time %q is no time such as '%s'", seen, clockTime(now.Host))
	}
	if off := now.Host.Sub(at).Abs(); off > clockSlack {
		return false, fault.New(fault.ErrConflict, "the host's clock is not what you have seen: it says %s", clockTime(now.Host))
	}
	return true, nil
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
