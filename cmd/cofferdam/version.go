package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// versions is what `version --json` writes.
type versions struct {
	Version string       `json:"version"`
	Go      string       `json:"go"`
	Daemon  *api.Version `json:"daemon,omitempty"` // nil: none runs
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Tell the version of this program and of the daemon, if one runs",
		GroupID: groupHost,
		Example: "  cofferdam version\n  cofferdam version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versions{Version: version, Go: runtime.Version()}
			ctx, cancel := withQuickTimeout(cmd.Context())
			defer cancel()
			c, err := elsewhere(ctx)
			if err != nil {
				return err
			}
			if c == nil {
				paths, err := config.DefaultPaths()
				if err != nil {
					return err
				}
				c = client.Own(paths.DaemonSocket())
			}
			daemon, err := c.Version(ctx)
			if err == nil {
				v.Daemon = &daemon
			} else if !errors.Is(err, client.ErrNoDaemon) {
				return fmt.Errorf("the daemon does not answer: %w", err)
			}
			return writeAnswer(v, asJSON, writeVersions)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writeVersions(w io.Writer, v versions) error {
	_, err := fmt.Fprintf(w, "cofferdam %s (%s)\n", v.Version, v.Go)
	if err == nil && v.Daemon != nil {
		_, err = fmt.Fprintf(w, "daemon    %s, process %d, state in %s\n",
			ui.Printable(v.Daemon.Version), v.Daemon.PID, ui.Printable(v.Daemon.State))
	}
	return err
}
