package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

func newReload() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "reload",
		Short:   "Have the daemon read its configuration file again",
		GroupID: groupHost,
		Long: `Has the daemon that runs read its configuration file again, and take what it can without
a restart: ` + strings.Join(config.Reloaded(), ", ") + `. Of other keys that have changed it
says that they wait for the next start (docs/configuration.md has the list); a restart
ends no sandbox. Of a file that is wrong nothing is taken. The audit log has who did this,
the file's digest and the keys that have changed.`,
		Example: "  cofferdam reload\n  cofferdam reload --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := onThisHost(cmd.Context(), "reload"); err != nil {
				return err
			}
			paths, err := config.DefaultPaths()
			if err != nil {
				return err
			}
			done, err := client.ReloadConfig(cmd.Context(), client.Own(paths.DaemonSocket()))
			if err != nil {
				return err
			}
			return writeAnswer(done, asJSON, writeReload)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func writeReload(w io.Writer, done api.ConfigReload) error {
	text := ""
	switch {
	case done.SHA256 == "" && len(done.Reloaded)+len(done.AtStart) == 0:
		text = "There is no " + done.File + ": every key has its default.\n"
	case len(done.Reloaded)+len(done.AtStart) == 0:
		text = "Nothing has changed in " + done.File + ".\n"
	case done.SHA256 == "" && len(done.Reloaded) > 0:
		text = "There is no " + done.File + "; these keys have their defaults now: " + strings.Join(done.Reloaded, ", ") + "\n"
	case len(done.Reloaded) > 0:
		text = "These keys of " + done.File + " count now: " + strings.Join(done.Reloaded, ", ") + "\n"
	}
	if len(done.AtStart) > 0 {
		text += "These count from the daemon's next start: " + strings.Join(done.AtStart, ", ") + "\n"
	}
	_, err := fmt.Fprint(w, text)
	return err
}
