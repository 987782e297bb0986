package template

import (
	"context"
	"io"
	"io/fs"
	"os"
	"os/exec"
)

// removeTree deletes a tree, also one whose files belong to a namespace's
// users, which the plain way can't.
func removeTree(ctx context.Context, dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || os.Geteuid() == 0 {
		return err
	}
	tool := findTool("mmdebstrap")
	if tool == "" {
		return err
	}
	cmd := exec.CommandContext(ctx, tool, "--unshare-helper", "rm", "-rf", "--", dir) //nolint:gosec // a path of our own making
	if helped := cmd.Run(); helped != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// copyFile copies content; the copy is new and has the mode given.
func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from) //nolint:gosec // the caller's choice
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode) //nolint:gosec // the caller's choice
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chmod(to, mode) // whatever the umask
}
