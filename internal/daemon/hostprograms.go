package daemon

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/config"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath/written"
)

// FindRunsc looks where the configuration says, beside the binary, where `make
// install` puts it, then in PATH, and takes none that somebody could have put where a sandbox may write, or
// could. A path that does not exist is returned all the same: the engine says so.
func FindRunsc(configured, executable string, trees []hostpath.Tree) string {
	if configured != "" {
		return configured // checkHostPrograms looks at it
	}
	beside := filepath.Join(filepath.Dir(executable), "runsc")
	near := []string{beside, filepath.Join(filepath.Dir(executable), "..", "libexec", "cofferdam", "runsc")}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			near = append(near, filepath.Join(dir, "runsc"))
		}
	}
	for _, candidate := range near {
		path, err := exec.LookPath(candidate)
		if err != nil {
			continue
		}
		if _, theirs, err := hostpath.Within(path, trees); err == nil && !theirs {
			return path
		}
	}
	return beside
}

// ownPrograms are Cofferdam's own programs, and the virtual environment that they lie in, if they do:
// who writes there decides what its programs do. One of the configuration is in config.HostFiles.
func ownPrograms(executable, runsc string) []string {
	all := []string{executable, runsc}
	for _, program := range []string{executable, runsc} {
		root := filepath.Dir(filepath.Dir(program))
		if _, err := os.Stat(filepath.Join(root, "pyvenv.cfg")); err == nil {
			all = append(all, root)
		}
	}
	return all
}

// checkHostPrograms refuses to start where a sandbox could have written what the daemon itself runs.
func checkHostPrograms(paths config.Paths, cfg config.Config) error {
	trees, err := written.Read(paths.Written())
	if err != nil || len(trees) == 0 {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "this program can't be found")
	}
	all := append(ownPrograms(self, FindRunsc(cfg.Runsc, self, trees)), cfg.EnginePrograms()...)
	for _, program := range all {
		tree, theirs, err := hostpath.Within(program, trees)
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "where %s lies can't be looked at", program)
		}
		if theirs {
			return fault.New(fault.ErrForbidden, "%s, which the daemon runs, is reached under %s, where a sandbox could write, so that it may be an agent's: install it elsewhere, as with `uv tool install cofferdam` or `pipx install cofferdam`, or name another in the configuration", program, tree.Path)
		}
	}
	return nil
}
