package mounts

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	gitignore "github.com/sabhiram/go-gitignore"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
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
	ignoreMaxBytes   = 1 << 20 // of the file itself
	hiddenDirBytes   = 4 << 10
)

// hide returns mounts that lie over each path that the mount's ignore file
// names: an empty read-only directory, or an empty file. They hide what exists
// at the start; a file that the host makes later is not hidden. All is read by the
// descriptor of the mount's source.
func hide(m Checked, emptyFile string) ([]engine.Mount, error) {
	ignore, err := readIgnore(m)
	if err != nil || ignore == nil {
		return nil, err
	}
	root, err := m.path.Root()
	if err != nil {
		return nil, fault.Invalid("the mount source %s can't be read", m.Source)
	}
	defer root.Close() //nolint:errcheck // a directory handle
	h := hider{mount: m, ignore: ignore, emptyFile: emptyFile}
	err = fs.WalkDir(root.FS(), ".", h.look)
	return h.over, err
}

// readIgnore reads the mount's ignore file; nil if it has none.
func readIgnore(m Checked) (*gitignore.GitIgnore, error) {
	if m.Origin().Type != hostpath.Dir {
		return nil, nil //nolint:nilnil // a file has no ignore file
	}
	file := filepath.Join(m.Source, IgnoreFile)
	path, err := m.path.Below(IgnoreFile, hostpath.Identity{Type: hostpath.File})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // it has none
	}
	if _, link := errors.AsType[*hostpath.LinkError](err); link {
		return nil, fault.Invalid("the ignore file %s is a link, and whoever may replace it decides what is hidden; put the file itself there", file)
	}
	if err != nil {
		return nil, fault.Invalid("the ignore file %s can't be read: %v", file, err)
	}
	defer path.Close()
	text, err := path.ReadFile(ignoreMaxBytes)
	if err != nil {
		return nil, fault.Invalid("the ignore file %s can't be read: %v", file, err)
	}
	return gitignore.CompileIgnoreLines(strings.Split(string(text), "\n")...), nil
}

// hider looks through a mount.
type hider struct {
	mount     Checked
	ignore    *gitignore.GitIgnore
	emptyFile string
	seen      int
	over      []engine.Mount
}

func (h *hider) look(rel string, d fs.DirEntry, err error) error {
	if err != nil || rel == "." {
		return err
	}
	if h.seen++; h.seen > ignoreMaxEntries {
		return fault.Invalid("%s has an ignore file but more than %d entries; mount a smaller directory", h.mount.Source, ignoreMaxEntries)
	}
	// A link tells a name and no more: what it points to is hidden by its own
	// name or lies outside of the mount, and a mount over a link would land
	// wherever the link points.
	if d.Type()&fs.ModeSymlink != 0 || !matches(h.ignore, rel, d.IsDir()) {
		return nil
	}
	if len(h.over) == ignoreMaxHidden {
		return fault.Invalid("the ignore file of %s hides more than %d paths; ignore directories rather than files", h.mount.Source, ignoreMaxHidden)
	}
	around, err := h.mount.path.Below(filepath.Dir(rel), hostpath.Identity{Type: hostpath.Dir})
	if err != nil {
		return fault.Invalid("%s, which is to be hidden, was moved while it was looked at: %v; try again", filepath.Join(h.mount.Source, rel), err)
	}
	around.Close()
	hidden := engine.Mount{Destination: filepath.Join(h.mount.Destination, rel), ReadOnly: true, Around: around.ID}
	if d.IsDir() {
		hidden.SizeBytes, hidden.Mode = hiddenDirBytes, 0o555
		h.over = append(h.over, hidden)
		return fs.SkipDir
	}
	hidden.Source = h.emptyFile
	h.over = append(h.over, hidden)
	return nil
}

// matches asks with a trailing slash for directories, so that patterns such as
// "build/" mean directories only.
func matches(ignore *gitignore.GitIgnore, rel string, dir bool) bool {
	if ignore.MatchesPath(rel) {
		return true
	}
	return dir && ignore.MatchesPath(rel+"/")
}
