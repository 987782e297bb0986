package main

import (
	"context"
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

func newLogs() *cobra.Command {
	var follow, list bool
	cmd := &cobra.Command{
		Use:     "logs [flags] SANDBOX [COMMAND]",
		Short:   "Show what a sandbox's command has written",
		GroupID: groupWork,
		Long: `Prints the last 4 MB that a command has written, its stdout to stdout and its stderr
to stderr. Without COMMAND, it is the newest one. With --follow it goes on until the
command ends. The exit code is not the command's.`,
		Example: "  cofferdam logs sb4f1c\n  cofferdam logs -f sb4f1c cmd-91ab\n  cofferdam logs --list sb4f1c",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			c, err := connectDaemon(ctx)
			if err != nil {
				return err
			}
			box, err := c.Sandbox(ctx, args[0])
			if err != nil {
				return err
			}
			if list {
				return writeCommands(os.Stdout, box.Commands)
			}
			command, err := chosen(box, args[1:])
			if err != nil {
				return err
			}
			return showLog(ctx, c, box.ID, command, follow)
		},
		ValidArgsFunction: completeCommands,
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the command ends")
	cmd.Flags().BoolVar(&list, "list", false, "list the sandbox's commands instead")
	return cmd
}

// chosen is the command that is named, or the newest one.
func chosen(box api.Sandbox, names []string) (api.Command, error) {
	if len(box.Commands) == 0 {
		return api.Command{}, fault.New(fault.ErrNotFound, "no command was started in the sandbox %s", box.ID)
	}
	if len(names) == 0 {
		return box.Commands[len(box.Commands)-1], nil
	}
	for _, c := range box.Commands {
		if c.ID == names[0] {
			return c, nil
		}
	}
	return api.Command{}, fault.New(fault.ErrNotFound, "there is no command %q in the sandbox %s; cofferdam logs --list %s shows its commands", names[0], box.ID, box.ID)
}

// showLog passes the output on: as far as there is some now or, with follow, to
// the command's end.
func showLog(ctx context.Context, c *client.Client, box string, command api.Command, follow bool) error {
	follow = follow || command.Exit != nil // what has ended comes to its end by itself
	if !follow && command.Output == 0 {
		return nil
	}
	link, err := c.Attach(ctx, box, command.ID, 0)
	if err != nil {
		return err
	}
	defer func() { _ = link.Close() }() // nothing of value is in it any more
	for event, err := range link.Events() {
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case event.Gap > 0:
			_, _ = fmt.Fprintf(os.Stderr, "cofferdam: %d bytes are not kept any more\n", event.Gap)
		case event.Stdout != nil:
			_, err = os.Stdout.Write(event.Stdout)
		case event.Stderr != nil:
			_, err = os.Stderr.Write(event.Stderr)
		}
		if err != nil {
			return err
		}
		if !follow && link.Offset() >= command.Output {
			return nil
		}
	}
	return nil
}

func writeCommands(w io.Writer, commands []api.Command) error {
	return tableOf([]string{"COMMAND", "STARTED", "STATE", "OUTPUT", "WHAT"}, func(c api.Command) []string {
		state := "running"
		if c.Exit != nil {
			state = fmt.Sprintf("ended with %d", c.Exit.Code)
		}
		return []string{c.ID, c.Started.Local().Format(time.DateTime), state, ui.Size(c.Output), ui.ShellWords(c.Argv)}
	})(w, commands)
}

// completeCommands offers sandboxes, and then the commands of the one that was
// named.
func completeCommands(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeSandboxes(cmd, args, word)
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeFound(func(ctx context.Context, c *client.Client) []string {
		box, _ := c.Sandbox(ctx, args[0]) // no commands, if it can't be asked
		var found []string
		for _, one := range box.Commands {
			found = append(found, one.ID+"\t"+ui.Printable(ui.ShellWords(one.Argv)))
		}
		return found
	})(cmd, args, word)
}
