package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/guest/embedded"
)

// emptyName is the file that is laid over hidden files of a mount.
const emptyName = "empty"

// installAgent writes the guest agent where sandboxes see it. A changed agent
// replaces the file, never its content: living sandboxes keep theirs.
func installAgent(dir string) error {
	agent, err := embedded.Binary()
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755), executable(dir)); err != nil { //nolint:gosec // it is shown to sandboxes, whose user is another
		return err
	}
	if err := replaceFile(filepath.Join(dir, "cofferdam-guest"), agent, 0o755); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, emptyName), nil, 0o444); err != nil {
		return err
	}
	for _, name := range []string{"cofferdam", guest.SudoName, guest.ToolName} { // what the agent's program does depends on its name
		if err := os.Symlink("cofferdam-guest", filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// executable refuses a directory from which no program may be run: a sandbox would end at its
// start, and nothing in it could say why.
func executable(dir string) error {
	var where unix.Statfs_t
	if err := unix.Statfs(dir, &where); err != nil {
		return err
	}
	if where.Flags&unix.ST_NOEXEC != 0 {
		return fault.New(fault.ErrUnavailable, "%s is on a file system that is mounted noexec, and sandboxes run their agent from there; set COFFERDAM_STATE to a directory elsewhere, or mount it without noexec", dir)
	}
	return nil
}

// replaceFile writes content beside path and renames it there, unless it is
// there already.
func replaceFile(path string, content []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return os.Chmod(path, mode)
	}
	return atomicfile.ReplaceVolatile(path, content, mode) // the next start looks again
}
