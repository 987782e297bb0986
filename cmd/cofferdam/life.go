package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newPause() *cobra.Command {
	return onEach(&cobra.Command{
		Use:     "pause SANDBOX...",
		Short:   "Write sandboxes to disk and free their memory",
		GroupID: groupWork,
		Long: `Writes a sandbox to disk, memory and files, and ends its processes. "cofferdam resume"
lets them go on where they were, also after a restart of the daemon. The time that a
sandbox is paused does not count against its --ttl.`,
		Example:           "  cofferdam pause sb4f1c",
		ValidArgsFunction: completeSandboxes,
	}, "pausing", dropResult((*client.Client).Pause))
}

func newResume() *cobra.Command {
	return onEach(&cobra.Command{
		Use:     "resume SANDBOX...",
		Short:   "Let paused sandboxes go on",
		GroupID: groupWork,
		Long: `Lets a paused sandbox go on, at the instruction where it was paused. If its policy, or
an advisory, would refuse one of its packages today, this says which, and the sandbox
stays paused. A running sandbox is left alone.`,
		Example:           "  cofferdam resume sb4f1c",
		ValidArgsFunction: completeSandboxes,
	}, "resuming", dropResult((*client.Client).Resume))
}

func newExtend() *cobra.Command {
	var life lifeFlags
	cmd := &cobra.Command{
		Use:     "extend [flags] SANDBOX...",
		Short:   "Say anew when sandboxes end by themselves",
		GroupID: groupWork,
		Long: `Changes when a sandbox ends by itself, counted from now. Without flags, it no longer
ends by itself. That it ends when its client is gone (a run without --keep) stays so.`,
		Example: "  cofferdam extend --ttl 2h sb4f1c\n  cofferdam extend --idle 15m --then-pause sb4f1c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			l, err := life.lifetime()
			if err != nil {
				return err
			}
			return doEach(cmd.Context(), "extending", ids, func(c *client.Client, ctx context.Context, id string) error {
				_, err := c.SetLifetime(ctx, id, l)
				return err
			})
		},
		ValidArgsFunction: completeSandboxes,
	}
	life.registerFlags(cmd)
	return cmd
}

func newFork() *cobra.Command {
	var life lifeFlags
	var count int
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "fork [flags] SANDBOX",
		Short:   "Make running copies of a sandbox",
		GroupID: groupWork,
		Long: `Makes running copies of a sandbox, with its files, memory and processes, and prints
their ids, one per line. The sandbox goes on. The copies end as it was told to, counted
from now, unless flags say otherwise. If a copy could not be made, stderr says so, and
the exit code is 1.`,
		Example: "  cofferdam fork sb4f1c\n  cofferdam fork --count 4 --ttl 10m sb4f1c",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := life.lifetime()
			if err != nil {
				return err
			}
			var forks []api.Fork
			err = copySandbox(cmd, args[0], func(c *client.Client, ctx context.Context) (err error) {
				forks, err = c.Fork(ctx, args[0], api.ForkSandbox{Count: count, Lifetime: l})
				return err
			})
			if err != nil {
				return err
			}
			return tellForks(forks, asJSON)
		},
		ValidArgsFunction: completeFirst(completeSandboxes),
	}
	cmd.Flags().IntVarP(&count, "count", "n", 1, "how many")
	incomplete(cmd, "count")
	life.registerFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// copySandbox has the daemon copy a sandbox, which takes as long as it is large.
func copySandbox(cmd *cobra.Command, sandbox string, do func(*client.Client, context.Context) error) error {
	return withDaemon(cmd.Context(), longTimeout, func(ctx context.Context, c *client.Client) error {
		return ui.ShowWaiting("copying "+sandbox, func() error { return do(c, ctx) })
	})
}

func tellForks(forks []api.Fork, asJSON bool) error {
	if asJSON {
		if err := ui.WriteJSON(os.Stdout, forks); err != nil {
			return err
		}
	}
	var failures []error
	for _, f := range forks {
		switch {
		case f.Error != nil:
			failures = append(failures, fmt.Errorf("a copy was not made: %w", &client.Error{Problem: *f.Error}))
		case !asJSON && f.Sandbox != nil:
			fmt.Println(ui.Printable(f.Sandbox.ID))
		}
	}
	if len(failures) > 0 {
		return &exitError{code: exitFailure, err: errors.Join(failures...)}
	}
	return nil
}

func newSnapshot() *cobra.Command {
	var req api.MakeSnapshot
	var files, asJSON bool
	cmd := &cobra.Command{
		Use:     "snapshot [flags] SANDBOX",
		Short:   "Copy a running sandbox, to make others from",
		GroupID: groupWork,
		Long: `Copies a running sandbox, memory and files, and prints the snapshot's id. The sandbox
goes on. "cofferdam create --snapshot" makes sandboxes from it, whose processes go on
where they were. A snapshot never changes; if one byte of it changes on the disk, it
is refused.`,
		Example: "  cofferdam snapshot --name warm sb4f1c\n  cofferdam snapshot --files sb4f1c\n  cofferdam snapshots list",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if files {
				req.Contents = "files"
			}
			var made api.Snapshot
			err := copySandbox(cmd, args[0], func(c *client.Client, ctx context.Context) (err error) {
				made, err = c.MakeSnapshot(ctx, args[0], req)
				return err
			})
			if err != nil {
				return err
			}
			return writeAnswer(made, asJSON, func(w io.Writer, made api.Snapshot) error {
				_, err := fmt.Fprintln(w, ui.Printable(made.ID))
				return err
			})
		},
		ValidArgsFunction: completeFirst(completeSandboxes),
	}
	cmd.Flags().StringVar(&req.Name, "name", "", "a name; an older snapshot of yours that has it loses it")
	incomplete(cmd, "name")
	cmd.Flags().BoolVar(&files, "files", false, "files only: what is made from it starts anew, with no processes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newSnapshots() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "snapshots",
		Short:   "List and remove snapshots",
		GroupID: groupWork,
		Example: "  cofferdam snapshots list\n  cofferdam snapshots rm warm",
	}
	cmd.AddCommand(newSnapshotsList(), newSnapshotsRemove())
	return cmd
}

func newSnapshotsList() *cobra.Command {
	return lister(&cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the snapshots",
		Example: "  cofferdam snapshots list\n  cofferdam snapshots list --json",
	}, (*client.Client).Snapshots, []string{"SNAPSHOT", "NAME", "OF", "TEMPLATE", "HOLDS", "SIZE", "AGE", "DIGEST"}, func(s api.Snapshot) []string {
		holds := s.Contents
		if s.Compressed {
			holds += ", compressed"
		}
		return []string{s.ID, s.Name, s.Sandbox, s.Template, holds, ui.Size(s.Bytes), ui.Age(time.Since(s.Created)), s.Digest}
	})
}

func newSnapshotsRemove() *cobra.Command {
	return onEach(&cobra.Command{
		Use:               "rm SNAPSHOT...",
		Aliases:           []string{"remove"},
		Short:             "Remove snapshots, by id or name",
		Long:              "Removes snapshots. Sandboxes that were made from them stay.",
		Example:           "  cofferdam snapshots rm warm",
		ValidArgsFunction: completeSnapshots,
	}, "removing", (*client.Client).RemoveSnapshot)
}
