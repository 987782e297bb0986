package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// attachment is what a runner needs to go back to a run.
type attachment struct {
	name     string // of a run or a sandbox
	fromNow  bool
	terminal bool // its command has one
	over     bool // find has found no sandbox
}

func newAttach() *cobra.Command {
	var flags runFlags
	var fromNow bool
	cmd := &cobra.Command{
		Use:     "attach [flags] RUN|SANDBOX",
		Short:   "Go back to a run that was left waiting",
		GroupID: groupWork,
		Long: `Goes back to a run that was left, as if "cofferdam run" had never ended: you get the
last 4 MB of its output and what follows, you can type, signals and the window's size
are passed on, and the exit code and the summary come at the end. The sandbox then
ends, too.

A run is left if you type Ctrl-C while it waits for an approval, with
--detach-on-hold, when "cofferdam run" is killed while it waits, or with --keep. Its
sandbox stays as long as its command waits, for a day of running without anybody
attached (with --keep without end), and for 15 minutes after the command's end.

If the run is over, this says from the log how it ended, and exits with its command's
exit code.`,
		Example: "  cofferdam attach run-4f1c07\n  cofferdam attach --from-now sb4f1c07",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(cmd, "name one run or one sandbox; cofferdam list shows them")
			}
			return attachTo(cmd.Context(), flags, attachment{name: args[0], fromNow: fromNow})
		},
		ValidArgsFunction: completeRunning,
	}
	cmd.Flags().BoolVar(&fromNow, "from-now", false, "leave out what the command has written so far")
	cmd.Flags().BoolVar(&flags.detach, "detach-on-hold", false, "leave the run, with exit code 75, as soon as it waits for an approval")
	cmd.Flags().BoolVar(&flags.json, "json", false, "tell the outcome as one line of JSON, the last of stderr, as run does")
	return cmd
}

// attachTo runs `cofferdam attach` once the flags are parsed.
func attachTo(ctx context.Context, flags runFlags, a attachment) error {
	r := newRunner(flags, nil)
	r.attach = &a
	exit, err := r.runCommand(ctx)
	if flags.json {
		err = r.tellJSON(ctx, exit, err)
	}
	return err
}

// findRun finds the sandbox and the command to go back to, if the run is not over.
func (r *runner) findRun(ctx context.Context) error {
	c, err := connectDaemon(ctx)
	if err != nil {
		return err
	}
	r.client = c
	boxes, err := c.Sandboxes(ctx)
	if err != nil {
		return err
	}
	id, err := findSandboxName(boxes, r.attach.name)
	if err != nil {
		return withExitCode(ctx, exitUsage, err)
	}
	if id == "" {
		r.attach.over = true
		return nil
	}
	box, err := c.Sandbox(ctx, id)
	if client.StatusOf(err) == http.StatusNotFound { // it has just ended
		r.attach.over = true
		return nil
	}
	if err != nil {
		return err
	}
	r.noteSandbox(box)
	if len(box.Commands) == 0 {
		return withExitCode(ctx, exitUsage, fault.New(fault.ErrConflict, "no command was started in the sandbox %s; there is nothing to attach to", id))
	}
	command := box.Commands[len(box.Commands)-1]
	r.command, r.argv, r.attach.terminal = command.ID, command.Argv, command.Terminal
	if r.attach.fromNow {
		r.session.from = command.Output
	}
	return nil
}

// findSandboxName finds the sandbox that a run or sandbox is named by; "" if it is none that
// lives. Of several sandboxes of one run it must be said which.
func findSandboxName(boxes []api.Sandbox, name string) (string, error) {
	var found []string
	for _, b := range boxes {
		if b.ID == name {
			return b.ID, nil
		}
		if b.Run == name {
			found = append(found, b.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fault.Invalid("the run %s has %d sandboxes; name one of them: %s", name, len(found), strings.Join(found, " "))
}

// tellOver says from the record how a run has ended.
func (r *runner) tellOver(ctx context.Context) (*api.Exit, error) {
	end, err := r.recordedEnd(ctx)
	if err != nil {
		return nil, err
	}
	if end.run == "" {
		return nil, withExitCode(ctx, exitUsage, fault.New(fault.ErrNotFound, "there is no run and no sandbox %q, and none is on record", r.attach.name))
	}
	r.box.Run, r.box.ID, r.argv = end.run, end.sandbox, end.argv
	if end.exit == nil {
		return nil, fmt.Errorf("the run %s is over, and how its command ended is not on record (its sandbox: %s)", end.run, cmp.Or(end.reason, "its end is not on record either"))
	}
	r.stderr.Say("the run %s is over: its command ended with %d at %s", end.run, *end.exit, end.at)
	if !r.flags.json {
		r.printReport(ctx, nil)
	}
	exit := api.Exit{Code: *end.exit}
	return &exit, r.sayNow(judgeExit(exit))
}

// ending is how a run ended, as far as it is on record.
type ending struct {
	run, sandbox, reason, at string
	argv                     []string
	exit                     *int // of its last command
}

// recordedEnd looks for the run's, or else the sandbox's, records; its run is ""
// if there are none.
func (r *runner) recordedEnd(ctx context.Context) (ending, error) {
	name := r.attach.name
	for _, filter := range []client.RecordFilter{{Run: name}, {Sandbox: name}} {
		filter.Kinds = []string{string(audit.KindSandbox), string(audit.KindCommand)}
		var end ending
		for line, err := range r.client.Records(ctx, filter) {
			var record audit.Record
			if err == nil {
				err = json.Unmarshal(line, &record)
			}
			if err != nil {
				return ending{}, fmt.Errorf("read the record of %s: %w", name, err)
			}
			if record.Run == name || record.Sandbox == name {
				end.readRecord(record)
			}
		}
		if end.run != "" {
			return end, nil
		}
	}
	return ending{}, nil
}

func (e *ending) readRecord(r audit.Record) {
	e.run, e.sandbox = r.Run, r.Sandbox
	switch {
	case r.Kind == audit.KindCommand && r.Outcome == audit.Started:
		e.argv, e.exit = r.Command, nil
	case r.Kind == audit.KindCommand && r.Outcome == audit.Finished:
		e.exit, e.at = r.Exit, r.Time.Format("2006-01-02 15:04:05 MST")
	case r.Kind == audit.KindSandbox && r.Outcome == audit.Finished:
		e.reason = r.Reason
	}
}

// completeRunning offers the runs that live, those that wait first, and then the
// newest of the others.
func completeRunning(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, directive := completeFound(func(ctx context.Context, c *client.Client) []string {
		boxes, _ := c.Sandboxes(ctx) // none, if none can be asked
		slices.SortStableFunc(boxes, func(a, b api.Sandbox) int { return min(len(b.Holds), 1) - min(len(a.Holds), 1) })
		var runs []string
		for _, b := range boxes {
			runs = append(runs, b.Run+"\t"+ui.Printable(strings.TrimSpace(stateOf(b)+" "+waitsFor(b.Holds))))
		}
		return runs
	})(cmd, args, word)
	return found, directive | cobra.ShellCompDirectiveKeepOrder
}
