package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/config"
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
			ctx, cancel := notTooLong(cmd.Context())
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
				c = client.New(paths.DaemonSocket())
			}
			daemon, err := c.Version(ctx)
			if err == nil {
				v.Daemon = &daemon
			} else if !errors.Is(err, client.ErrNoDaemon) {
				return fmt.Errorf("the daemon does not answer: %w", err)
			}
			if asJSON {
				return writeJSON(os.Stdout, v)
			}
			return v.write()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func (v versions) write() error {
	_, err := fmt.Printf("cofferdam %s (%s)\n", v.Version, v.Go)
	if err == nil && v.Daemon != nil {
		_, err = fmt.Printf("daemon    %s, process %d, state in %s\n",
			printable(v.Daemon.Version), v.Daemon.PID, printable(v.Daemon.State))
	}
	return err
}

// version is written by the linker (-X main.version=...).
var version = "dev"
