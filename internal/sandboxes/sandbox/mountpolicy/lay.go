package mountpolicy

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Lay checks what was asked for and returns it in the order in which an engine mounts
// it, with guards over the files that decide what a later run may do (the policy and
// the lockfiles, and the mounts' own ignore files), and over all what ignore files hide.
func (r Rules) Lay(ctx context.Context, asked []Mount, deciding []string) ([]engine.Mount, error) {
	checked, err := r.openSources(asked)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range checked {
			c.Close()
		}
	}()
	var all, over []engine.Mount
	var ignores [][]*ignoreFile
	may := NewComparing()
	for _, c := range checked {
		shown, err := c.mountOver(checked)
		if err != nil {
			return nil, err
		}
		all = append(all, shown)
		files, hidden, err := r.hiding(ctx, c, may)
		if err != nil {
			return nil, err
		}
		ignores, over = append(ignores, files), append(over, hidden...)
	}
	if err := checkNested(checked); err != nil {
		return nil, err
	}
	// A mount inside of another comes after it, or it would lie below it.
	slices.SortStableFunc(all, func(a, b engine.Mount) int { return strings.Compare(a.Destination, b.Destination) })
	// Paths that the ignore file hides stay hidden: it lies over the guards.
	guards, err := guardFiles(ctx, checked, guarded(deciding, ignores))
	if err != nil {
		return nil, err
	}
	own, err := coverOwn(checked, r.OwnPrograms)
	if err != nil {
		return nil, err
	}
	return slices.Concat(all, guards, own, over), nil
}

// openSources opens the sources. Where one request may write, no link is followed for another
// of its own: so all are opened once more when it is known where that is.
func (r Rules) openSources(asked []Mount) ([]Checked, error) {
	trees := r.writableTrees()
	for _, a := range asked {
		c, err := r.checkMount(a, trees)
		if err != nil {
			return nil, err
		}
		if c.Close(); c.ReadWrite {
			trees = append(slices.Clip(trees), hostpath.Tree{Path: c.Source, ID: c.Origin()})
		}
	}
	var all []Checked
	for _, a := range asked {
		c, err := r.checkMount(a, trees)
		if err == nil && c.ReadWrite && !slices.Contains(trees, hostpath.Tree{Path: c.Source, ID: c.Origin()}) {
			c.Close()
			err = fault.New(fault.ErrConflict, "the mount source %s was replaced while it was looked at; try again", a.Source)
		}
		if err != nil {
			for _, c := range all {
				c.Close()
			}
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// guardFiles returns the read-only mounts that keep the agent from rewriting files
// which lie under a read-write mount. A file directly in a mount's root is
// covered by a read-only mount of itself. One that lies deeper can't be
// protected, because the directory above it could be renamed, and is refused;
// so is one that is reached through a link in such a mount, because the link
// could be replaced.
func guardFiles(ctx context.Context, mounts []Checked, files []string) ([]engine.Mount, error) {
	var over []engine.Mount
	if !slices.ContainsFunc(mounts, func(m Checked) bool { return m.ReadWrite }) {
		return nil, nil // and who may name files of the host and mount none learns nothing of them
	}
	table, err := hostpath.ReadTable()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the host's table of mounts can't be read")
	}
	for _, file := range files {
		resolved, links, err := hostpath.Links(file)
		if err != nil {
			return nil, fault.Invalid("%s can't be read any more", file)
		}
		if err := checkSecondNames(ctx, mounts, table, resolved); err != nil {
			return nil, err
		}
		for _, m := range mounts {
			if !m.ReadWrite {
				continue
			}
			for _, link := range links {
				if _, below := table.NameUnder(link, m.Source); below {
					return nil, fault.Invalid("%s is reached through %s, a link under the read-write mount %s, which the agent could replace; name the file itself, or mount that directory read-only", file, link, m.Source)
				}
			}
			name, below := table.NameUnder(resolved, m.Source)
			if !below {
				continue
			}
			if filepath.Dir(name) != m.Source {
				return nil, fault.Invalid("%s lies under the read-write mount %s, where the agent could rewrite it; move it out, or mount that directory read-only", file, m.Source)
			}
			cover, err := coverOf(m, name)
			if err != nil {
				return nil, err
			}
			cover.Source, cover.Origin = resolved, hostpath.Identity{Type: hostpath.File} // its owner may write it anew: any file is what all see there
			if !slices.Contains(over, cover) && !askedAt(mounts, cover) {                 // two links may lead to one file
				over = append(over, cover)
			}
		}
	}
	return over, nil
}

// mountOver is the mount as an engine mounts it, with what it lies over where that is directly in a mount that can be
// written: as long as that is there nobody inside reaches it.
func (c Checked) mountOver(all []Checked) (engine.Mount, error) {
	shown := c.mountShown()
	for _, outer := range all {
		if !outer.ReadWrite || filepath.Dir(c.Destination) != outer.Destination {
			continue
		}
		place, err := outer.path.Below(filepath.Base(c.Destination), c.Origin().Kind())
		if err != nil {
			return shown, nil //nolint:nilerr // checkNested says what is wrong with it
		}
		shown.Covers, err = place.Mark()
		if place.Close(); err != nil {
			return shown, err
		}
	}
	return shown, nil
}

// checkNested refuses a mount inside of another one whose place does not exist
// there: the engine would have to make it, on the host and also below a
// read-only mount.
func checkNested(mounts []Checked) error {
	for _, inner := range mounts {
		for _, outer := range mounts {
			if inner.Destination == outer.Destination || !isWithin(inner.Destination, outer.Destination) {
				continue
			}
			if err := checkPlace(inner, outer); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPlace looks at the way from the outer mount's root to the inner one, on which the
// engine does not follow links either.
func checkPlace(inner, outer Checked) error {
	rel := strings.TrimPrefix(inner.Destination, outer.Destination+"/")
	place, err := outer.path.Below(rel, inner.Origin().Kind())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Invalid("the mount destination %s lies in the mount %s, where it does not exist; make %s first", inner.Destination, outer.Destination, filepath.Join(outer.Source, rel))
	case err != nil:
		return fault.Invalid("the mount destination %s lies in the mount %s, where %s is something else than its source; choose another destination", inner.Destination, outer.Destination, filepath.Join(outer.Source, rel))
	}
	place.Close()
	return nil
}
