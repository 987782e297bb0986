package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// auditFiles are the flags of what reads a log's files and asks no daemon.
type auditFiles struct {
	dir  string
	key  string
	json bool
}

func (f *auditFiles) registerFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "", "the log's directory, or a copy of it (default: this installation's)")
	cmd.Flags().StringVar(&f.key, "key", "", "the public key that you trust: a file, or the key itself")
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON")
	registerCompletion(cmd, "dir", completeDirs)
}

// directory is the log's directory.
func (f *auditFiles) directory() (string, error) {
	if f.dir != "" {
		if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
			return "", fault.New(fault.ErrNotFound, "there is no directory %s", f.dir)
		}
		return f.dir, nil
	}
	paths, err := config.DefaultPaths()
	return paths.Audit(), err
}

// readKeys reads the keys that were given; nil if none was.
func (f *auditFiles) readKeys() (*checkpoint.Keyring, error) {
	if f.key == "" {
		return nil, nil
	}
	ring, err := publicKeys(f.key)
	return &ring, err
}
