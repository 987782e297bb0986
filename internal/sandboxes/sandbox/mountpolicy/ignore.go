package mountpolicy

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

const (
	ignoreMaxEntries = 500_000 // looked at below one mount
	ignoreMaxHidden  = 1_000   // mounts laid over paths
	hiddenDirBytes   = 4 << 10
)

// Hide returns mounts that lie over each path of a mount that an ignore file
// hides: an empty read-only directory, or an empty file. They hide what exists
// now; a file that the host makes later is not hidden. All is read by the
// descriptor of the mount's source. A source that is hidden itself is fault.ErrInvalid,
// and so is more than the request may compare.
func (r Rules) Hide(ctx context.Context, m Checked, may *Comparing) ([]engine.Mount, error) {
	_, over, err := r.hiding(ctx, m, may)
	return over, err
}

// hiding is Hide that also tells which ignore files hold for the mount.
func (r Rules) hiding(ctx context.Context, m Checked, may *Comparing) ([]*ignoreFile, []engine.Mount, error) {
	files, err := r.ignoreFiles(ctx, m.path, may)
	if err != nil {
		return nil, nil, err
	}
	over, err := r.hideWith(ctx, m, files, ignoreMaxHidden, may)
	return files, over, err
}

// hideWith hides, as Hide does, by the ignore files that hold for the mount. most bounds how many paths they hide.
func (r Rules) hideWith(ctx context.Context, m Checked, files []*ignoreFile, most int, may *Comparing) ([]engine.Mount, error) {
	if err := checkShown(m.path, files); err != nil || len(files) == 0 || m.Origin().Type != hostpath.Dir {
		return nil, err
	}
	over, err := r.lookThrough(ctx, m, files, most, may)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := r.keepHidden(ctx, f, may); err != nil {
			return nil, err
		}
	}
	return over, nil
}

// lookThrough looks for what ignore files hide, and notes it in them. It looks through the parts of the mount of which they say
// something, however large what is around these is. most bounds how many paths are hidden.
func (r Rules) lookThrough(ctx context.Context, m Checked, files []*ignoreFile, most int, may *Comparing) ([]engine.Mount, error) {
	h := hider{mount: m, emptyFile: r.EmptyFile, most: most, may: may}
	for part, files := range partsOf(files) {
		h.files = files
		err := treewalk.Walk(ctx, m.path, part, lookedThrough(), h.looking(ctx))
		if bound, is := errors.AsType[*treewalk.BoundError](err); is {
			return nil, fault.Invalid("%s has an ignore file in it or above it, and the directory %s; mount a smaller directory, or remove what is too much", filepath.Join(m.Source, part), bound.Has)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return nil, movedMeanwhile(filepath.Join(m.Source, part), err)
		}
		if err != nil {
			return nil, err
		}
	}
	// Members of a pool have their mounts in one order.
	slices.SortFunc(h.over, func(a, b engine.Mount) int { return strings.Compare(a.Destination, b.Destination) })
	return h.over, nil
}

// lookedThrough is how much of a mount's source is looked through. An agent may have filled it.
func lookedThrough() treewalk.Bounds {
	b := treewalk.Usual()
	b.Entries = ignoreMaxEntries
	return b
}

// partsOf are the parts of what is shown of which ignore files say something, relative and none in another, with these files.
func partsOf(files []*ignoreFile) map[string][]*ignoreFile {
	begins := map[string]bool{}
	for _, f := range files {
		begins[f.at] = true
	}
	parts := map[string][]*ignoreFile{}
	for _, f := range files {
		part := f.at
		for dir := f.at; dir != "." && dir != ""; dir = filepath.Dir(dir) {
			if begins[dir] {
				part = dir
			}
		}
		if begins[""] || part == "" {
			part = "."
		}
		parts[part] = append(parts[part], f)
	}
	return parts
}

// checkShown refuses what an ignore file hides whole.
func checkShown(shown *hostpath.Path, files []*ignoreFile) error {
	for _, f := range files {
		if f.hidden && f.at == "" {
			return fault.Invalid("%s can't be shown: the ignore file %s hides it; show another directory, or take that out of the ignore file", shown.Name, f.pathOf())
		}
	}
	return nil
}

// keepHidden notes what an ignore file hides. If a part of its directory alone was looked through, and too much is
// known to tell what of it is there no more, all of the directory is.
func (r Rules) keepHidden(ctx context.Context, f *ignoreFile, may *Comparing) error {
	dir := hostpath.Tree{Path: f.dir, ID: f.id}
	err := r.Hidden.keepHidden(dir, f.digest, f.ids, f.before != "")
	if !errors.Is(err, errManyParts) {
		return err
	}
	whole, err := hostpath.Open(f.dir, f.id)
	if err != nil {
		return movedMeanwhile(f.dir, err)
	}
	defer whole.Close()
	files, err := r.ignoreFiles(ctx, whole, may)
	if err != nil {
		return err
	}
	// Nothing is mounted over it, so that what is known is the bound, not what an engine mounts.
	_, err = r.hideWith(ctx, Checked{Mount{Source: f.dir}, whole}, files, r.Hidden.mostIDs, may)
	if errors.Is(err, fault.ErrInvalid) {
		return fault.Invalid("what %s hides was made anew so often that all of its directory has to be looked through; change a line of it, and what it has hidden before is forgotten: %v", f.pathOf(), err)
	}
	return err
}

// knownByInode is of, by inode.
func (h *Hidden) knownByInode(source hostpath.Identity, ignore string) map[uint64][]hostpath.Identity {
	all := map[uint64][]hostpath.Identity{}
	for _, id := range h.hiddenOf(source, ignore) {
		all[id.Inode] = append(all[id.Inode], id)
	}
	return all
}

// Ignored makes what tells which paths of a directory ignore files hide, or have hidden under
// another name, for whoever copies it, until the context ends: they must not be in a copy that a sandbox is given, in which
// they would have other identities. nil: none. It is of use as long as the directory is open. A directory that is hidden
// itself is fault.ErrInvalid.
func (r Rules) Ignored(ctx context.Context, dir *hostpath.Path) (func(rel string, d fs.DirEntry) bool, error) {
	files, err := r.ignoreFiles(ctx, dir, NewComparing())
	if err == nil {
		err = checkShown(dir, files)
	}
	if err != nil || len(files) == 0 {
		return nil, err
	}
	h := hider{mount: Checked{Mount{Source: dir.Name}, dir}, files: files, may: &Comparing{math.MaxInt64}} // whoever copies bounds what is copied
	return func(rel string, d fs.DirEntry) bool {
		by, err := h.hiding(ctx, rel, d)
		return err != nil || len(by) > 0 // the request has ended, and nobody knows what else is hidden
	}, nil
}

// hider looks through a mount.
type hider struct {
	mount     Checked
	files     []*ignoreFile
	emptyFile string
	most      int // paths that are hidden
	seen      int
	may       *Comparing
	over      []engine.Mount
}

// looking is look, until the context ends.
func (h *hider) looking(ctx context.Context) fs.WalkDirFunc {
	return func(rel string, d fs.DirEntry, err error) error { return h.lookAtEntry(ctx, rel, d, err) }
}

func (h *hider) lookAtEntry(ctx context.Context, rel string, d fs.DirEntry, err error) error {
	if err != nil || rel == "." {
		return err
	}
	if h.seen++; h.seen > ignoreMaxEntries {
		return fault.Invalid("%s has an ignore file in it or above it but more than %d entries; mount a smaller directory", h.mount.Source, ignoreMaxEntries)
	}
	by, err := h.hiding(ctx, rel, d)
	if err != nil || len(by) == 0 {
		return err
	}
	if len(h.over) == h.most {
		return fault.Invalid("the ignore file %s hides more than %d paths of %s; ignore directories rather than files", by[0].pathOf(), h.most, h.mount.Source)
	}
	around, err := h.mount.path.Below(filepath.Dir(rel), hostpath.Identity{Type: hostpath.Dir})
	if err != nil {
		return fault.Invalid("%s, which is to be hidden, was moved while it was looked at: %v; try again", filepath.Join(h.mount.Source, rel), err)
	}
	defer around.Close()
	if this, err := around.Below(filepath.Base(rel), hostpath.Identity{}); err == nil { // else it is no file, such as a socket
		for _, f := range by {
			f.ids = append(f.ids, this.ID)
		}
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

// hiding are the ignore files that hide a path. A link tells a name and no more: what it points to is hidden by its own
// name or lies outside of the mount, and a mount over a link would land wherever the link points.
func (h *hider) hiding(ctx context.Context, rel string, d fs.DirEntry) (by []*ignoreFile, err error) {
	if d.Type()&fs.ModeSymlink != 0 {
		return nil, nil
	}
	for _, f := range h.files {
		hides, err := h.hidesEntry(ctx, f, rel, d)
		if err != nil {
			return nil, err
		}
		if hides {
			by = append(by, f)
		}
	}
	return by, nil
}

func (h *hider) hidesEntry(ctx context.Context, f *ignoreFile, rel string, d fs.DirEntry) (bool, error) {
	if f.hidden && rel == f.at {
		return true, nil
	}
	name, holds := f.nameOf(rel)
	if !holds {
		return false, nil
	}
	hides, err := h.may.matchesIgnore(ctx, f.pathOf(), f.patterns, h.mount.Source, name, d.IsDir())
	return err == nil && (hides || h.wasHidden(f, rel, d)), err
}

// wasHidden tells whether something under this name was hidden before, under this or another one.
func (h *hider) wasHidden(f *ignoreFile, rel string, d fs.DirEntry) bool {
	if len(f.known) == 0 {
		return false
	}
	info, err := d.Info()
	if err != nil {
		return false // it has just gone
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok || len(f.known[sys.Ino]) == 0 {
		return false
	}
	this, err := h.mount.path.Below(rel, hostpath.Identity{})
	if err != nil {
		return !isNotShown(err) // nobody knows what it is
	}
	defer this.Close()
	return f.hasHidden(this.ID)
}

// guarded are the files that decide what a later run may do: those that the caller
// knows, and the ignore files that hold for mounts.
func guarded(deciding []string, ignores [][]*ignoreFile) []string {
	files := slices.Clone(deciding)
	for _, some := range ignores {
		for _, f := range some {
			if !slices.Contains(files, f.pathOf()) {
				files = append(files, f.pathOf())
			}
		}
	}
	return files
}
