package daemon

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	hostexec "github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/vouched"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// FindRunsc looks where the configuration says, beside the binary, where `make
// install` puts it, then in PATH, and takes none that somebody could have put where a sandbox may write, or
// could. A path that does not exist is returned all the same: the engine says so.
func FindRunsc(configured, executable string, trees []hostpath.Tree) string {
	if filepath.IsAbs(configured) {
		return configured // CheckHostPrograms looks at it
	}
	if configured != "" { // it would be looked for in PATH, again each time
		return cmp.Or(hostexec.LookPath(configured, os.Environ(), trees), filepath.Join(string(os.PathSeparator), configured))
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

// environmentMarks are what the root of an environment has in it: one that venv, uv or virtualenv made, and one of
// conda's, mamba's or pixi's.
func environmentMarks() []string { return []string{"pyvenv.cfg", "conda-meta"} }

// ownPrograms are Cofferdam's own programs, and the virtual environment that they lie in, if they do:
// who writes there decides what its programs do. One of the configuration is in config.HostFiles.
func ownPrograms(executable, runsc string) []string {
	all := []string{executable, runsc}
	for _, program := range []string{executable, runsc} {
		root := filepath.Dir(filepath.Dir(program))
		for _, mark := range environmentMarks() {
			if _, err := os.Stat(filepath.Join(root, mark)); err == nil {
				all = append(all, root)
				break
			}
		}
	}
	return all
}

// hostEnvironment is this process's, as programs of the host have it, and the daemon itself believes it:
// without what a sandbox may write, or could.
func hostEnvironment(paths config.Paths) []string {
	return discover.Environment(os.Environ(), written.OrAnywhere(paths.Written()))
}

// CheckHostPrograms refuses to start where a sandbox could have written what the daemon itself runs or
// believes. Of what it runs later, as for a tool or a secret, each is looked at when it is used.
func CheckHostPrograms(paths config.Paths, cfg config.Config) error {
	trees, err := written.Read(paths.Written())
	if err != nil || len(trees) == 0 {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "this program can't be found")
	}
	all := append(ownPrograms(self, FindRunsc(cfg.Runsc, self, trees)), cfg.EnginePrograms()...)
	for _, program := range append(all, cfg.Believed(paths)...) {
		tree, theirs, err := hostpath.Within(program, trees)
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "where %s lies can't be looked at", program)
		}
		if theirs {
			return fault.New(fault.ErrForbidden, "%s, which the daemon runs or believes, is reached under %s, where a sandbox could write, so that it may be an agent's: %s", program, tree.Path, hostexec.MoveOwn)
		}
	}
	return nil
}

// seenPatience is how long a command of a person's may keep the daemon from the list of files that they vouch for.
const seenPatience = 10 * time.Second

// seenOf is sandbox.Config.Seen.
func seenOf(d *Daemon) func(what, path string, text []byte) error {
	seen := seenBy(d)
	return func(what, path string, text []byte) error { return seen(context.Background(), what, path, text) }
}

// seenBy is httpapi.Config.Seen: who writes here is this installation's own.
func seenBy(d *Daemon) func(ctx context.Context, what, source string, document []byte) error {
	book, writable := vouched.Open(d.opts.Paths.Vouched()), writableOf(d)
	return func(ctx context.Context, what, source string, document []byte) error {
		ctx, cancel := context.WithTimeout(ctx, seenPatience)
		defer cancel()
		return book.Check(ctx, what, source, document, writable())
	}
}
