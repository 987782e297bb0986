package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// stopTimeout is how long a daemon may take to end.
const stopTimeout = 2 * time.Minute

func newStop() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:     "stop",
		Short:   "End the daemon",
		GroupID: groupHost,
		Long: `Ends your daemon, and returns when it has ended. It refuses while there are sandboxes,
unless --force ends them too, also where they have outlived their daemon. A daemon that
"cofferdam run" started ends by itself when it is idle.`,
		Example: "  cofferdam stop\n  cofferdam stop --force",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), stopTimeout)
			defer cancel()
			if err := onThisHost(ctx, "stop"); err != nil {
				return err
			}
			return stopDaemon(ctx, force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "end the sandboxes too")
	return cmd
}

func stopDaemon(ctx context.Context, force bool) error {
	paths, err := config.DefaultPaths()
	if err != nil {
		return err
	}
	c := client.Own(paths.DaemonSocket())
	err = c.Shutdown(ctx, force)
	switch {
	case errors.Is(err, client.ErrNoDaemon):
		return stopLeft(ctx, paths, force)
	case client.StatusOf(err) == http.StatusConflict && !force:
		return fmt.Errorf("%w (cofferdam list shows them, cofferdam kill SANDBOX... ends some, cofferdam stop --force ends all)", err)
	case err != nil:
		return err
	}
	if err := awaitLock(ctx, paths, func() bool { return false }); err != nil {
		return fmt.Errorf("the daemon has agreed to end, but has not ended: %w", err)
	}
	return nil
}

// stopLeft stops what is left where no daemon runs. Sandboxes outlive a daemon that was killed, or that systemd has stopped;
// with force one is started, which takes them over, and ends them and itself. Where nobody listens at the keeper's
// socket there are none; of any other error it is one that may have some.
func stopLeft(ctx context.Context, paths config.Paths, force bool) error {
	left, err := keeper.Dial(paths.KeeperSocket()).List(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), err == nil && len(left) == 0:
		_, err = fmt.Fprintln(os.Stderr, "cofferdam: no daemon is running")
		return err
	case !force && err != nil:
		return fmt.Errorf("no daemon is running, and whether sandboxes outlived one can't be told (cofferdam stop --force ends them): %w", err)
	case !force:
		return errors.New("no daemon is running, and sandboxes that outlived one are (cofferdam list shows them, cofferdam stop --force ends them)")
	}
	if _, err := connectAt(ctx, paths); err != nil {
		return fmt.Errorf("no daemon is running, and the one that would end the sandboxes which outlived it can't be had: %w", err)
	}
	return stopDaemon(ctx, true)
}
