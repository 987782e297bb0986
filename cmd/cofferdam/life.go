package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// each does something with every sandbox that is named, and goes on after one
// that fails.
func each(ctx context.Context, what string, ids []string, do func(ctx context.Context, c *client.Client, id string) error) error {
	ctx, cancel := context.WithTimeout(ctx, longPatience)
	defer cancel()
	c, err := connect(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, id := range ids {
		if err := patiently(what+" "+printable(id), func() error { return do(ctx, c, id) }); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", id, err))
		}
	}
	return errors.Join(failures...)
}

func newPause() *cobra.Command {
	return &cobra.Command{
		Use:     "pause SANDBOX...",
		Short:   "Write sandboxes to disk and free their memory",
		GroupID: groupWork,
		Long: `Writes a sandbox to disk, memory and files, and ends its processes. "cofferdam resume"
lets them go on where they were, also after a restart of the daemon. The time that a
sandbox is paused does not count against its --ttl.`,
		Example: "  cofferdam pause sb4f1c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return each(cmd.Context(), "pausing", ids, func(ctx context.Context, c *client.Client, id string) error {
				_, err := c.Pause(ctx, id)
				return err
			})
		},
		ValidArgsFunction: completeSandboxes,
	}
}

func newResume() *cobra.Command {
	return &cobra.Command{
		Use:     "resume SANDBOX...",
		Short:   "Let paused sandboxes go on",
		GroupID: groupWork,
		Long: `Lets a paused sandbox go on, at the instruction where it was paused. If its policy, or
an advisory, would refuse one of its packages today, this says which, and the sandbox
stays paused. A running sandbox is left alone.`,
		Example: "  cofferdam resume sb4f1c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return each(cmd.Context(), "resuming", ids, func(ctx context.Context, c *client.Client, id string) error {
				_, err := c.Resume(ctx, id)
				return err
			})
		},
		ValidArgsFunction: completeSandboxes,
	}
}

func newExtend() *cobra.Command {
	var life lifeFlags
	cmd := &cobra.Command{
		Use:     "extend [flags] SANDBOX...",
		Short:   "Say anew when sandboxes end by themselves",
		GroupID: groupWork,
		Long: `Changes when a sandbox ends by itself, counted from now. Without flags, it no longer
ends by itself.`,
		Example: "  cofferdam extend --ttl 2h sb4f1c\n  cofferdam extend --idle 15m --then-pause sb4f1c",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			l, err := life.lifetime()
			if err != nil {
				return err
			}
			return each(cmd.Context(), "extending", ids, func(ctx context.Context, c *client.Client, id string) error {
				_, err := c.SetLifetime(ctx, id, l)
				return err
			})
		},
		ValidArgsFunction: completeSandboxes,
	}
	life.register(cmd)
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
their ids, one per line. The sandbox goes on. If a copy could not be made, stderr says
so, and the exit code is 1.`,
		Example: "  cofferdam fork sb4f1c\n  cofferdam fork --count 4 --ttl 10m sb4f1c",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := life.lifetime()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), longPatience)
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			var forks []api.Fork
			err = patiently("copying "+printable(args[0]), func() error {
				forks, err = c.Fork(ctx, args[0], api.ForkSandbox{Count: count, Lifetime: l})
				return err
			})
			if err != nil {
				return err
			}
			return tellForks(forks, asJSON)
		},
		ValidArgsFunction: once(completeSandboxes),
	}
	cmd.Flags().IntVarP(&count, "count", "n", 1, "how many")
	register(cmd, "count", cobra.NoFileCompletions)
	life.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func tellForks(forks []api.Fork, asJSON bool) error {
	if asJSON {
		if err := writeJSON(os.Stdout, forks); err != nil {
			return err
		}
	}
	var failures []error
	for _, f := range forks {
		switch {
		case f.Error != nil:
			failures = append(failures, fmt.Errorf("a copy was not made: %w", &client.Error{Problem: *f.Error}))
		case !asJSON && f.Sandbox != nil:
			fmt.Println(printable(f.Sandbox.ID))
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
			ctx, cancel := context.WithTimeout(cmd.Context(), longPatience)
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			var made api.Snapshot
			err = patiently("copying "+printable(args[0]), func() error {
				made, err = c.MakeSnapshot(ctx, args[0], req)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(os.Stdout, made)
			}
			_, err = fmt.Println(printable(made.ID))
			return err
		},
		ValidArgsFunction: once(completeSandboxes),
	}
	cmd.Flags().StringVar(&req.Name, "name", "", "a name; an older snapshot of yours that has it loses it")
	register(cmd, "name", cobra.NoFileCompletions)
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the snapshots",
		Example: "  cofferdam snapshots list\n  cofferdam snapshots list --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := notTooLong(cmd.Context())
			defer cancel()
			c, err := connect(ctx)
			if err != nil {
				return err
			}
			snapshots, err := c.Snapshots(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(os.Stdout, snapshots)
			}
			rows := [][]string{{"SNAPSHOT", "NAME", "OF", "TEMPLATE", "HOLDS", "SIZE", "AGE", "DIGEST"}}
			for _, s := range snapshots {
				holds := s.Contents
				if s.Compressed {
					holds += ", compressed"
				}
				rows = append(rows, []string{s.ID, s.Name, s.Sandbox, s.Template, holds, bytesText(s.Bytes), age(time.Since(s.Created)), s.Digest})
			}
			return writeTable(os.Stdout, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func newSnapshotsRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "rm SNAPSHOT...",
		Aliases: []string{"remove"},
		Short:   "Remove snapshots, by id or name",
		Long:    "Removes snapshots. Sandboxes that were made from them stay.",
		Example: "  cofferdam snapshots rm warm",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, refs []string) error {
			return each(cmd.Context(), "removing", refs, func(ctx context.Context, c *client.Client, ref string) error {
				return c.RemoveSnapshot(ctx, ref)
			})
		},
		ValidArgsFunction: completeSnapshots,
	}
}
