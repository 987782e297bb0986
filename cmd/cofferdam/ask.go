package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// withDaemon finds the daemon, or starts one, and has it do something, all of it within
// some time.
func withDaemon(ctx context.Context, timeout time.Duration, do func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := connectDaemon(ctx)
	if err != nil {
		return err
	}
	return do(ctx, c)
}

// askDaemon asks the daemon for what a method of its client returns.
func askDaemon[T any](cmd *cobra.Command, method func(*client.Client, context.Context) (T, error)) (answer T, err error) {
	err = withDaemon(cmd.Context(), quickTimeout, func(ctx context.Context, c *client.Client) error {
		answer, err = method(c, ctx)
		return err
	})
	return answer, err
}

// askFor asks the daemon by a method that is about something.
func askFor[A, T any](cmd *cobra.Command, method func(*client.Client, context.Context, A) (T, error), about A) (T, error) {
	return askDaemon(cmd, func(c *client.Client, ctx context.Context) (T, error) { return method(c, ctx, about) })
}

// askAgain asks the daemon, and where it is gone meanwhile the one that takes its
// place. Asking twice must do no harm.
func askAgain[T any](ctx context.Context, c *client.Client, question func(*client.Client) (T, error)) (T, error) {
	answer, err := question(c)
	if !errors.Is(err, client.ErrNoDaemon) && !errors.Is(err, client.ErrLost) {
		return answer, err
	}
	if c, err = connectDaemon(ctx); err != nil {
		return answer, err
	}
	return question(c)
}

// jsonFlag adds --json to a command; it says whether it was given.
func jsonFlag(cmd *cobra.Command) *bool { return cmd.Flags().Bool("json", false, "write JSON") }

// writeAnswer writes an answer to stdout, as JSON or as text for a person.
func writeAnswer[T any](answer T, asJSON bool, text func(io.Writer, T) error) error {
	if asJSON {
		return ui.WriteJSON(os.Stdout, answer)
	}
	return text(os.Stdout, answer)
}

// tableOf writes things as a table with these columns.
func tableOf[T any](columns []string, row func(T) []string) func(io.Writer, []T) error {
	return func(w io.Writer, things []T) error {
		rows := [][]string{columns}
		for _, t := range things {
			rows = append(rows, row(t))
		}
		return ui.WriteTable(w, rows)
	}
}

// lister completes a command that lists what the daemon has, as a table or as JSON.
func lister[T any](cmd *cobra.Command, method func(*client.Client, context.Context) ([]T, error), columns []string, row func(T) []string) *cobra.Command {
	asJSON := jsonFlag(cmd)
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		things, err := askDaemon(cmd, method)
		if err != nil {
			return err
		}
		return writeAnswer(things, *asJSON, tableOf(columns, row))
	}
	return cmd
}

// doEach does something with everything that is named, and goes on after one that fails.
// A person who waits is shown what is being done; each error names what it is about.
func doEach(ctx context.Context, doing string, names []string, do func(*client.Client, context.Context, string) error) error {
	return withDaemon(ctx, longTimeout, func(ctx context.Context, c *client.Client) error {
		var failures []error
		for _, name := range names {
			err := ui.ShowWaiting(doing+" "+name, func() error { return do(c, ctx, name) })
			if err != nil && !strings.Contains(err.Error(), name) {
				err = fmt.Errorf("%s: %w", name, err)
			}
			failures = append(failures, err)
		}
		return errors.Join(failures...)
	})
}

// onEach completes a command that does one thing with everything that is named.
func onEach(cmd *cobra.Command, doing string, do func(*client.Client, context.Context, string) error) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, names []string) error { return doEach(cmd.Context(), doing, names, do) }
	return cmd
}

// dropResult makes of a method of the client one whose answer nobody reads.
func dropResult[T any](method func(*client.Client, context.Context, string) (T, error)) func(*client.Client, context.Context, string) error {
	return func(c *client.Client, ctx context.Context, name string) error {
		_, err := method(c, ctx, name)
		return err
	}
}
