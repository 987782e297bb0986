package mounts

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
)

// Lay checks what was asked for and returns it in the order in which an engine mounts
// it, with guards over the files that decide what a later run may do (the policy and
// the lockfiles, and the mounts' own ignore files), and over all what ignore files hide.
func (r Rules) Lay(asked []Mount, deciding []string) ([]engine.Mount, error) {
	checked := make([]Mount, 0, len(asked))
	var all, over []engine.Mount
	for _, a := range asked {
		c, err := r.Check(a)
		if err != nil {
			return nil, err
		}
		checked = append(checked, c)
		all = append(all, engine.Mount{Source: c.Source, Destination: c.Destination, ReadOnly: !c.ReadWrite})
		hidden, err := hide(c, r.EmptyFile)
		if err != nil {
			return nil, err
		}
		over = append(over, hidden...)
	}
	if err := checkNested(checked); err != nil {
		return nil, err
	}
	// A mount inside of another comes after it, or it would lie below it.
	slices.SortStableFunc(all, func(a, b engine.Mount) int { return strings.Compare(a.Destination, b.Destination) })
	// What the ignore file hides stays hidden: it lies over the guards.
	guards, err := guard(checked, guarded(checked, deciding))
	if err != nil {
		return nil, err
	}
	return slices.Concat(all, guards, over), nil
}

// maxLinks is how many symlinks a path may lead through; the kernel's own limit.
const maxLinks = 40

// guarded are the files that decide what a later run may do: those that the caller
// knows, and the ignore files of the mounts.
func guarded(mounts []Mount, deciding []string) []string {
	files := slices.Clone(deciding)
	for _, m := range mounts {
		ignore := filepath.Join(m.Source, IgnoreFile)
		if _, err := os.Lstat(ignore); err == nil {
			files = append(files, ignore)
		}
	}
	return files
}

// guard returns the read-only mounts that keep the agent from rewriting files
// which lie under a read-write mount. A file directly in a mount's root is
// covered by a read-only mount of itself. One that lies deeper can't be
// protected, because the directory above it could be renamed, and is refused;
// so is one that is reached through a link in such a mount, because the link
// could be replaced.
func guard(mounts []Mount, files []string) ([]engine.Mount, error) {
	var over []engine.Mount
	if !slices.ContainsFunc(mounts, func(m Mount) bool { return m.ReadWrite }) {
		return nil, nil // and who may name files of the host and mount none learns nothing of them
	}
	for _, file := range files {
		resolved, links, err := follow(file)
		if err != nil {
			return nil, fault.Invalid("%s can't be read any more", file)
		}
		for _, m := range mounts {
			if !m.ReadWrite {
				continue
			}
			for _, link := range links {
				if within(link, m.Source) {
					return nil, fault.Invalid("%s is reached through %s, a link under the read-write mount %s, which the agent could replace; name the file itself, or mount that directory read-only", file, link, m.Source)
				}
			}
			if !within(resolved, m.Source) {
				continue
			}
			if filepath.Dir(resolved) != m.Source {
				return nil, fault.Invalid("%s lies under the read-write mount %s, where the agent could rewrite it; move it out, or mount that directory read-only", file, m.Source)
			}
			cover := engine.Mount{
				Source: resolved, Destination: filepath.Join(m.Destination, filepath.Base(resolved)), ReadOnly: true,
			}
			if !slices.Contains(over, cover) { // two links may lead to one file
				over = append(over, cover)
			}
		}
	}
	return over, nil
}

// follow resolves an absolute path and tells where the symlinks lie that it
// leads through.
func follow(path string) (resolved string, links []string, err error) {
	resolved, rest := "/", strings.Split(filepath.Clean(path), "/")
	for len(rest) > 0 {
		next := filepath.Join(resolved, rest[0]) // "" stays, ".." goes up
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			resolved = next
			continue
		}
		if links = append(links, next); len(links) > maxLinks {
			return "", nil, fault.Invalid("%s leads through too many links", path)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(target) {
			resolved = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return resolved, links, nil
}

// checkNested refuses a mount inside of another one whose place does not exist
// there: the engine would have to make it, on the host and also below a
// read-only mount.
func checkNested(mounts []Mount) error {
	for _, inner := range mounts {
		for _, outer := range mounts {
			if inner.Destination == outer.Destination || !within(inner.Destination, outer.Destination) {
				continue
			}
			if err := checkPlace(inner, outer); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPlace looks at each step of the way from the outer mount's root to the
// inner one, since the engine does not follow links there either.
func checkPlace(inner, outer Mount) error {
	source, err := os.Stat(inner.Source)
	if err != nil {
		return fault.Invalid("the mount source %s can't be read", inner.Source)
	}
	rel := strings.TrimPrefix(inner.Destination, outer.Destination+"/")
	place, steps := outer.Source, strings.Split(rel, "/")
	for i, step := range steps {
		place = filepath.Join(place, step)
		last := i == len(steps)-1
		info, err := os.Lstat(place)
		switch {
		case err != nil:
			return fault.Invalid("the mount destination %s lies in the mount %s, where it does not exist; make %s first", inner.Destination, outer.Destination, place)
		case !last && !info.IsDir(), last && info.IsDir() != source.IsDir(), last && !info.IsDir() && !info.Mode().IsRegular():
			return fault.Invalid("the mount destination %s lies in the mount %s, where %s is something else than its source; choose another destination", inner.Destination, outer.Destination, place)
		}
	}
	return nil
}
