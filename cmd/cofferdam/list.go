package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

func newList() *cobra.Command {
	var asJSON bool
	var filter client.SandboxFilter
	var labels []string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the sandboxes",
		GroupID: groupWork,
		Long: `Lists the sandboxes of this installation, the oldest first. A sandbox of "cofferdam
run" is there as long as its command runs. One that is "held" waits for approvals; one
that is "frozen" waits on disk and uses no memory. One that is "stuck" could not be
removed, and is tried again. ENDS is when it ends by itself.`,
		Example: "  cofferdam list\n  cofferdam list --state paused --label team=ml\n  cofferdam list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if filter.Labels, err = parseLabels(labels); err != nil {
				return err
			}
			ctx, cancel := notTooLong(cmd.Context())
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			boxes, err := c.FindSandboxes(ctx, filter)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(os.Stdout, boxes)
			}
			return writeSandboxes(os.Stdout, boxes, time.Now())
		},
	}
	set := cmd.Flags()
	set.BoolVar(&asJSON, "json", false, "write JSON")
	set.StringArrayVar(&filter.States, "state", nil, "only those in this state; may be repeated")
	set.StringArrayVar(&filter.Runs, "run", nil, "only those of this run; may be repeated")
	set.StringArrayVar(&filter.Templates, "template", nil, "only those of this template; may be repeated")
	set.StringArrayVar(&filter.Snapshots, "snapshot", nil, "only those made from this snapshot, by id; may be repeated")
	set.StringArrayVar(&labels, "label", nil, "only those with this label, KEY=VALUE; with several, those that have all")
	for flag, complete := range map[string]complete{
		"state": fixed("running", "frozen", "paused"), "run": completeRuns, "template": completeTemplates, "snapshot": completeSnapshots,
		"label": cobra.NoFileCompletions,
	} {
		register(cmd, flag, complete)
	}
	return cmd
}

func writeSandboxes(w io.Writer, boxes []api.Sandbox, now time.Time) error {
	rows := [][]string{{"SANDBOX", "RUN", "STATE", "TEMPLATE", "ENGINE", "AGE", "ENDS", "WAITS FOR", "TASK"}}
	for _, b := range boxes {
		rows = append(rows, []string{b.ID, b.Run, stateOf(b), b.Template, b.Engine, age(now.Sub(b.Created)), ends(b, now), waitsFor(b.Holds), b.Task})
	}
	return writeTable(w, rows)
}

// stateOf is a sandbox's state; "held" is one that runs while something in it
// waits for a person, "stuck" one that could not be taken away.
func stateOf(b api.Sandbox) string {
	if b.Stuck != nil {
		return "stuck"
	}
	if b.State == "running" && len(b.Holds) > 0 {
		return "held"
	}
	return b.State
}

// ends is when a sandbox ends by itself; "" if it does not, or its time stands
// still.
func ends(b api.Sandbox, now time.Time) string {
	if b.Ends.IsZero() || b.State == "paused" || b.State == "frozen" {
		return ""
	}
	what := "in "
	if strings.HasPrefix(b.Lifetime.AtEnd, "pause") {
		what = "pauses in "
	}
	return what + age(b.Ends.Sub(now))
}

// waitsFor names the requests that a sandbox waits for, the first three.
func waitsFor(holds []api.Hold) string {
	const most = 3
	var parts []string
	trees := map[string]bool{}
	for _, h := range holds {
		switch {
		case h.Tree == "":
			parts = append(parts, h.Request+" ("+h.Package+")")
		case !trees[h.Tree]:
			trees[h.Tree] = true
			parts = append(parts, h.Tree+" ("+h.Package+" and its install)")
		}
	}
	if more := len(parts) - most; more > 0 {
		parts = append(parts[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// writeTable aligns columns, and fits them into a terminal; every cell is made printable here. An empty cell
// that is not at the end of its row shows as a dash.
func writeTable(w io.Writer, rows [][]string) error {
	shown := make([][]string, len(rows))
	for n, row := range rows {
		shown[n] = make([]string, len(row))
		for i, cell := range row {
			shown[n][i] = printable(cell)
			if cell == "" && i < len(row)-1 {
				shown[n][i] = "-"
			}
		}
	}
	for _, line := range columns(shown, widthOf(w)) {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// age is a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
