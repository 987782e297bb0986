package daemon

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/engine/embedded"
)

// installStage writes the program that lays out sandboxes into a directory, and returns the
// argv that runs it. Where nothing may be run from there, or this binary does not carry it,
// the one binary does the same by its own command, through the keeper's own link.
func installStage(dir string) ([]string, error) {
	own := []string{"/proc/self/exe", "stage"}
	program, err := embedded.Stage()
	if err != nil || program == nil {
		return own, err
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil { //nolint:gosec // a directory has to be entered
		return nil, err
	}
	var where unix.Statfs_t
	if err := unix.Statfs(dir, &where); err != nil || where.Flags&unix.ST_NOEXEC != 0 {
		return own, err
	}
	path := filepath.Join(dir, "cofferdam-stage")
	return []string{path}, replaceFile(path, program, 0o700)
}
