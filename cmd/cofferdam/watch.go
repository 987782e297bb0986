package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newStats() *cobra.Command {
	var asJSON, single bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:     "stats [flags] [SANDBOX...]",
		Short:   "Show what sandboxes use",
		GroupID: groupWork,
		Long: `Shows how much processor, memory and disk sandboxes use, whose they are, under which
policy they run and what they wait for; without names, all of them.
On a terminal the table is updated until Ctrl-C, elsewhere it is printed once. CPU is
in percent of one core since the last update, so it is 0 at first.`,
		Example: "  cofferdam stats\n  cofferdam stats --json sb4f1c",
		RunE: func(cmd *cobra.Command, ids []string) error {
			if interval < 100*time.Millisecond {
				return usageError(cmd, "--interval is %s; it must be 100ms or more", interval)
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			c, err := connectDaemon(ctx)
			if err != nil {
				return err
			}
			if asJSON || single || !ui.IsTerminal(os.Stdout) {
				return writeStats(ctx, c, ids, asJSON)
			}
			return renewStats(ctx, c, ids, interval)
		},
		ValidArgsFunction: completeSandboxes,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, once")
	cmd.Flags().BoolVar(&single, "once", false, "write the table once, at a terminal, too")
	interval = 2 * time.Second
	spanVar(cmd.Flags(), &interval, "interval", "how often the table is renewed")
	incomplete(cmd, "interval")
	return cmd
}

// usedBy is what one sandbox uses, as `stats --json` writes it.
type usedBy struct {
	Sandbox    string     `json:"sandbox"`
	Run        string     `json:"run"`
	State      string     `json:"state"`
	PolicyName string     `json:"policy_name,omitempty"`
	Token      string     `json:"token,omitempty"`
	TokenName  string     `json:"token_name,omitempty"`
	Created    time.Time  `json:"created"`
	Holds      []api.Hold `json:"holds,omitempty"`
	Usage      *api.Usage `json:"usage,omitempty"` // nil: it has no processes now
}

// measure asks for all that is named, or all.
func measure(ctx context.Context, c *client.Client, ids []string) ([]listedSandbox, error) {
	boxes, err := c.Sandboxes(ctx)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, id := range ids {
		named[id] = false
	}
	var picked []api.Sandbox
	for _, b := range boxes {
		if _, asked := named[b.ID]; len(ids) > 0 && !asked {
			continue
		}
		named[b.ID] = true
		picked = append(picked, b)
	}
	for id, found := range named {
		if !found && len(ids) > 0 {
			return nil, fault.New(fault.ErrNotFound, "there is no sandbox %q", id)
		}
	}
	return usages(ctx, c, picked)
}

func writeStats(ctx context.Context, c *client.Client, ids []string, asJSON bool) error {
	ctx, cancel := withQuickTimeout(ctx)
	defer cancel()
	all, err := measure(ctx, c, ids)
	if err != nil {
		return err
	}
	if !asJSON {
		return writeUsage(os.Stdout, all)
	}
	used := make([]usedBy, 0, len(all))
	for _, b := range all {
		used = append(used, usedBy{
			Sandbox: b.ID, Run: b.Run, State: stateOf(b.Sandbox), PolicyName: b.PolicyName, Token: b.Token, TokenName: b.TokenName,
			Created: b.Created, Holds: b.Holds, Usage: b.Usage,
		})
	}
	return ui.WriteJSON(os.Stdout, used)
}

// renewStats renews the table on the screen until ctx ends.
func renewStats(ctx context.Context, c *client.Client, ids []string, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		all, err := measure(ctx, c, ids)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		var screen strings.Builder
		screen.WriteString("\x1b[H\x1b[J") // from the top, the rest taken away
		if err := writeUsage(&screen, all); err != nil {
			return err
		}
		if _, err := io.WriteString(os.Stdout, screen.String()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func writeUsage(w io.Writer, all []listedSandbox) error {
	now := time.Now()
	return tableOf([]string{"SANDBOX", "RUN", "OWNER", "POLICY", "STATE", "AGE", "CPU", "MEMORY", "DISK", "PROCESSES", "WAITS FOR"}, func(b listedSandbox) []string {
		cpu, memory, disk, processes := "", "", "", "-"
		if n := b.Usage; n != nil {
			cpu, processes = fmt.Sprintf("%.1f%% of %g", n.CPUPercent, n.CPUCount), strconv.Itoa(n.Processes)
			memory, disk = ofLimit(n.MemoryBytes, n.MemoryLimit), ofLimit(n.DiskBytes, n.DiskLimit)
		}
		return []string{
			b.ID, b.Run, ownerOf(b.Sandbox), policyOf(b.Sandbox), stateOf(b.Sandbox), ui.Age(now.Sub(b.Created)),
			cpu, memory, disk, processes, waitsFor(b.Holds),
		}
	})(w, all)
}

func ofLimit(n, limit int64) string {
	if limit <= 0 {
		return ui.Size(n)
	}
	return ui.Size(n) + " of " + ui.Size(limit)
}

func newEvents() *cobra.Command {
	var asJSON bool
	var after int64
	var most int
	var box string
	cmd := &cobra.Command{
		Use:     "events [flags]",
		Short:   "Show what happens to sandboxes",
		GroupID: groupWork,
		Long: `Writes a line for every change of a sandbox's state: first those that are kept (all,
or those after --after), then new ones as they happen, until Ctrl-C. With --json each
line is JSON; --after takes its "seq". It goes on if the daemon restarts, and misses
nothing.`,
		Example: "  cofferdam events\n  cofferdam events --json --after 120 --limit 10\n  cofferdam events --sandbox sb4f1c",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if after < 0 || most < 0 {
				return usageError(cmd, "--after and --limit are not negative")
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return watchEvents(ctx, box, after, most, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON lines")
	cmd.Flags().Int64Var(&after, "after", 0, "begin after the event with this number")
	cmd.Flags().IntVarP(&most, "limit", "n", 0, "end after so many (0: never)")
	cmd.Flags().StringVar(&box, "sandbox", "", "of this sandbox only")
	registerCompletion(cmd, "sandbox", completeSandboxes)
	incomplete(cmd, "after", "limit")
	return cmd
}

// watchEvents writes events until ctx ends or there were enough. A lost
// connection is sought again, as long as that gives something.
func watchEvents(ctx context.Context, box string, after int64, most int, asJSON bool) error {
	for tries, shown := 0, 0; ; tries++ {
		c, err := connectDaemon(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		for event, err := range c.Events(ctx, box, after) {
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, client.ErrLost) && tries < reattachTries:
				continue
			case err != nil:
				return err
			}
			if err := tellEvent(event, asJSON); err != nil {
				return err
			}
			after, tries = event.Seq, 0
			if shown++; shown == most {
				return nil
			}
		}
		if err := pauseFor(ctx, time.Duration(tries)*reattachPause); err != nil {
			return nil // the person has seen enough
		}
	}
}

func tellEvent(e api.Event, asJSON bool) error {
	if asJSON {
		return ui.WriteJSONLine(os.Stdout, e)
	}
	line := fmt.Sprintf("%s  %s  %s  %s", e.Time.Local().Format("2006-01-02 15:04:05.000"), e.Sandbox, e.Run, e.To)
	if e.Reason != "" {
		line += "  (" + e.Reason + ")"
	}
	_, err := fmt.Println(ui.Printable(line))
	return err
}
