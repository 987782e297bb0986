package daemon

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/embedded"
)

// selfLink leads to the program that runs, whatever has its name by now: an agent may have put something there.
const selfLink = "/proc/self/exe"

// installStage writes the program that lays out sandboxes into a directory, and returns the
// argv that runs it. Where this binary does not carry it, the one binary does the same by its
// own command, through the keeper's own link.
func installStage(dir string) ([]string, error) {
	program, err := embedded.Stage()
	if err != nil || program == nil {
		return []string{selfLink, "stage"}, err
	}
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil { //nolint:gosec // a directory has to be entered
		return nil, err
	}
	path := filepath.Join(dir, "cofferdam-stage")
	return []string{path}, replaceFile(path, program, 0o700)
}
