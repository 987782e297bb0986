package mounts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	gitignore "github.com/sabhiram/go-gitignore"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
)

// IgnoreFile is the file that, in the root of a mounted directory, hides paths
// of it from the sandbox; its syntax is that of .gitignore. The agent can't
// change it (guard). In a read-write mount it can rename a directory above
// something hidden, so that a pattern with a directory in it ("conf/key.pem") no
// longer names it: what was hidden once is known by what it is, and stays hidden
// as long as the ignore file is not changed (Hidden).
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
func (r Rules) hide(m Checked) ([]engine.Mount, error) {
	ignore, text, digest, err := readIgnore(m)
	if err == nil && r.Seen != nil && r.Hidden.changed(m.Origin(), digest) {
		err = r.Seen("ignore file", filepath.Join(m.Source, IgnoreFile), text)
	}
	if err != nil || ignore == nil {
		return nil, err
	}
	root, err := m.path.Root()
	if err != nil {
		return nil, fault.Invalid("the mount source %s can't be read", m.Source)
	}
	defer root.Close() //nolint:errcheck // a directory handle
	h := hider{mount: m, ignore: ignore, emptyFile: r.EmptyFile, known: r.Hidden.known(m.Origin(), digest)}
	if err := fs.WalkDir(root.FS(), ".", h.look); err != nil {
		return nil, err
	}
	return h.over, r.Hidden.keep(m.path, digest, h.ids)
}

// known is of, by inode.
func (h *Hidden) known(source hostpath.Identity, ignore string) map[uint64][]hostpath.Identity {
	all := map[uint64][]hostpath.Identity{}
	for _, id := range h.of(source, ignore) {
		all[id.Inode] = append(all[id.Inode], id)
	}
	return all
}

// Ignored makes what tells which paths of a directory its ignore file hides, or has hidden under
// another name, for whoever copies it: they must not be in a copy that a sandbox is given, in which
// they would have other identities. nil: none. It is of use as long as the directory is open. seen: see Rules.Seen.
func (h *Hidden) Ignored(dir *hostpath.Path, seen func(what, path string, text []byte) error) (func(rel string, d fs.DirEntry) bool, error) {
	m := Checked{Mount{Source: dir.Name}, dir}
	ignore, text, digest, err := readIgnore(m)
	if err == nil && seen != nil && h.changed(m.Origin(), digest) {
		err = seen("ignore file", filepath.Join(m.Source, IgnoreFile), text)
	}
	if err != nil || ignore == nil {
		return nil, err
	}
	hider := hider{mount: m, ignore: ignore, known: h.known(m.Origin(), digest)}
	return hider.hides, nil
}

// readIgnore reads the mount's ignore file, and makes a digest of it; nil if it has none.
func readIgnore(m Checked) (ignore *gitignore.GitIgnore, text []byte, digest string, err error) {
	if m.Origin().Type != hostpath.Dir {
		return nil, nil, "", nil // a file has no ignore file
	}
	file := filepath.Join(m.Source, IgnoreFile)
	path, err := m.path.Below(IgnoreFile, hostpath.Identity{Type: hostpath.File})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, "", nil // it has none
	}
	if _, link := errors.AsType[*hostpath.LinkError](err); link {
		return nil, nil, "", fault.Invalid("the ignore file %s is a link, and whoever may replace it decides what is hidden; put the file itself there", file)
	}
	if err != nil {
		return nil, nil, "", fault.Invalid("the ignore file %s can't be read: %v", file, err)
	}
	defer path.Close()
	text, err = path.ReadFile(ignoreMaxBytes)
	if err != nil {
		return nil, nil, "", fault.Invalid("the ignore file %s can't be read: %v", file, err)
	}
	sum := sha256.Sum256(text)
	return gitignore.CompileIgnoreLines(strings.Split(string(text), "\n")...), text, hex.EncodeToString(sum[:]), nil
}

// hider looks through a mount.
type hider struct {
	mount     Checked
	ignore    *gitignore.GitIgnore
	emptyFile string
	known     map[uint64][]hostpath.Identity // what was hidden before, by inode
	seen      int
	over      []engine.Mount
	ids       []hostpath.Identity // of what is hidden
}

func (h *hider) look(rel string, d fs.DirEntry, err error) error {
	if err != nil || rel == "." {
		return err
	}
	if h.seen++; h.seen > ignoreMaxEntries {
		return fault.Invalid("%s has an ignore file but more than %d entries; mount a smaller directory", h.mount.Source, ignoreMaxEntries)
	}
	if !h.hides(rel, d) {
		return nil
	}
	if len(h.over) == ignoreMaxHidden {
		return fault.Invalid("the ignore file of %s hides more than %d paths; ignore directories rather than files", h.mount.Source, ignoreMaxHidden)
	}
	around, err := h.mount.path.Below(filepath.Dir(rel), hostpath.Identity{Type: hostpath.Dir})
	if err != nil {
		return fault.Invalid("%s, which is to be hidden, was moved while it was looked at: %v; try again", filepath.Join(h.mount.Source, rel), err)
	}
	defer around.Close()
	if this, err := around.Below(filepath.Base(rel), hostpath.Identity{}); err == nil { // else it is no file, such as a socket
		h.ids = append(h.ids, this.ID)
		this.Close()
	}
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

// hides tells of one path. A link tells a name and no more: what it points to is hidden by its own
// name or lies outside of the mount, and a mount over a link would land wherever the link points.
func (h *hider) hides(rel string, d fs.DirEntry) bool {
	return d.Type()&fs.ModeSymlink == 0 && (matches(h.ignore, rel, d.IsDir()) || h.wasHidden(rel, d))
}

// wasHidden tells whether something under this name was hidden before, under this or another one.
func (h *hider) wasHidden(rel string, d fs.DirEntry) bool {
	if len(h.known) == 0 {
		return false
	}
	info, err := d.Info()
	if err != nil {
		return false // it has just gone
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok || len(h.known[sys.Ino]) == 0 {
		return false
	}
	this, err := h.mount.path.Below(rel, hostpath.Identity{})
	if err != nil {
		return false
	}
	defer this.Close()
	return slices.ContainsFunc(h.known[sys.Ino], func(id hostpath.Identity) bool { return id.IsAfterBoot(this.ID) })
}

// matches asks with a trailing slash for directories, so that patterns such as
// "build/" mean directories only.
func matches(ignore *gitignore.GitIgnore, rel string, dir bool) bool {
	if ignore.MatchesPath(rel) {
		return true
	}
	return dir && ignore.MatchesPath(rel+"/")
}
