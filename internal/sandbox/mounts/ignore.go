package mounts

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	gitignore "github.com/sabhiram/go-gitignore"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// IgnoreFile is the file that, in the root of a mounted directory, hides paths
// of it from the sandbox; its syntax is that of .gitignore. The agent can't
// change it (guard), but in a read-write mount it can rename a directory above
// something hidden: that stays hidden for this run, while a pattern with a
// directory in it ("conf/key.pem") no longer names it in the next. A pattern
// without one ("key.pem") does.
const IgnoreFile = ".aiignore"

const (
	ignoreMaxEntries = 500_000 // looked at below one mount
	ignoreMaxHidden  = 1_000   // mounts laid over paths
	hiddenDirBytes   = 4 << 10
)

// hide returns mounts that lie over each path that the mount's ignore file
// names: an empty read-only directory, or an empty file. They hide what exists
// at the start; a file that the host makes later is not hidden.
func hide(m Mount, emptyFile string) ([]engine.Mount, error) {
	ignore, err := gitignore.CompileIgnoreFile(filepath.Join(m.Source, IgnoreFile))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || isNotDirectory(err) {
			return nil, nil
		}
		return nil, fault.Invalid("the ignore file %s can't be read: %v", filepath.Join(m.Source, IgnoreFile), err)
	}
	var over []engine.Mount
	seen := 0
	err = filepath.WalkDir(m.Source, func(path string, d fs.DirEntry, walkErr error) error {
		if walkErr != nil {
			return walkErr
		}
		rel, err := filepath.Rel(m.Source, path)
		if err != nil || rel == "." {
			return err
		}
		if seen++; seen > ignoreMaxEntries {
			return fault.Invalid("%s has an ignore file but more than %d entries; mount a smaller directory", m.Source, ignoreMaxEntries)
		}
		// A link tells a name and no more: what it points to is hidden by its own
		// name or lies outside of the mount, and a mount over a link would land
		// wherever the link points.
		if d.Type()&fs.ModeSymlink != 0 || !matches(ignore, rel, d.IsDir()) {
			return nil
		}
		if len(over) == ignoreMaxHidden {
			return fault.Invalid("the ignore file of %s hides more than %d paths; ignore directories rather than files", m.Source, ignoreMaxHidden)
		}
		hidden := engine.Mount{Destination: filepath.Join(m.Destination, rel), ReadOnly: true}
		if d.IsDir() {
			hidden.SizeBytes, hidden.Mode = hiddenDirBytes, 0o555
			over = append(over, hidden)
			return fs.SkipDir
		}
		hidden.Source = emptyFile
		over = append(over, hidden)
		return nil
	})
	return over, err
}

// matches asks with a trailing slash for directories, so that patterns such as
// "build/" mean directories only.
func matches(ignore *gitignore.GitIgnore, rel string, dir bool) bool {
	if ignore.MatchesPath(rel) {
		return true
	}
	return dir && ignore.MatchesPath(rel+"/")
}

// isNotDirectory: the mount is a single file, so there is no ignore file.
func isNotDirectory(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe) && errors.Is(pe.Err, syscall.ENOTDIR)
}
