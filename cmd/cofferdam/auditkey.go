package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

func newAuditKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "key",
		Short:   "Show or replace the key that signs the log",
		Example: "  cofferdam audit key show > cofferdam.pub\n  cofferdam audit key rotate",
	}
	cmd.AddCommand(newAuditKeyShow(), newAuditKeyRotate())
	return cmd
}

func newAuditKeyShow() *cobra.Command {
	var files auditFiles
	var all bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the public key",
		Long: `Prints the public key that verifies the log, as one line. Keep it where nobody who
can write the log can change it. With --all, earlier keys come first.`,
		Example: "  cofferdam audit key show > cofferdam.pub",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := files.directory()
			if err != nil {
				return err
			}
			ring, err := audit.ReadPublicKeys(filepath.Join(dir, audit.PublicKeysName))
			if err != nil {
				return err
			}
			keys := ring.Keys()
			if !all {
				keys = keys[len(keys)-1:]
			}
			if files.json {
				return ui.WriteJSON(os.Stdout, map[string]any{"keys": keys})
			}
			for _, k := range keys {
				if _, err := fmt.Fprintln(os.Stdout, k); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&files.dir, "dir", "", "the log's directory, or a copy of it (default: this installation's)")
	cmd.Flags().BoolVar(&all, "all", false, "the keys before it, too")
	cmd.Flags().BoolVar(&files.json, "json", false, "write JSON")
	registerCompletion(cmd, "dir", completeDirs)
	return cmd
}

func newAuditKeyRotate() *cobra.Command {
	var reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the private key",
		Long: `Gives the log a new private key. Both keys sign a log checkpoint that names both, so
whoever trusts one of them can verify what the other signs. The old private key is
removed; what it signed can still be verified. The log records who did it.`,
		Example: "  cofferdam audit key rotate --reason \"yearly\"",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := askFor(cmd, (*client.Client).RotateAuditKey, api.RotateAuditKey{Reason: reason})
			if err != nil {
				return err
			}
			return writeAnswer(answer, asJSON, func(w io.Writer, answer api.RotatedAuditKey) error {
				_, err := fmt.Fprintln(w, answer.PublicKey)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is recorded")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}
