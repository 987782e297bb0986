package hostpath

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Tree is a directory that somebody may write to who is not trusted.
type Tree struct {
	Path string // resolved
	ID   Identity
	// Covered are names directly in it which nobody could write, rename or replace, nor anything below
	// them: each had a read-only mount over it all the time. They are sorted, with a slash between each two
	// ("bin/tools"), so that two trees can be compared.
	Covered string
}

// Covering is Tree.Covered for these names.
func Covering(names []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), "/")
}

// has tells whether a directory on the way is the tree's root, under whatever name.
func (t Tree) has(path string, id Identity) bool {
	return t.Path == path || t.ID.Inode != 0 && t.ID.IsAfterBoot(id)
}

// covers tells whether a name at or below the tree's root, which has another name by now, is covered.
func (t Tree) covers(name, root string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, root), "/"), "/")
	return first != "" && slices.Contains(strings.Split(t.Covered, "/"), first)
}

// Within tells in which tree somebody could have decided what a path leads to: it lies there, or a
// link on its way does. A path that leads nowhere is judged as far as it leads, since somebody could make the
// rest. What a tree covers is not in it.
func Within(path string, trees []Tree) (Tree, bool, error) {
	if len(trees) == 0 {
		return Tree{}, false, nil
	}
	table, err := ReadTable()
	if err != nil {
		return Tree{}, false, err
	}
	resolved, names, err := Links(path)
	if err == nil {
		names = append(names, resolved)
	} else {
		names = append(names, filepath.Clean(path))
	}
	for _, name := range names {
		for _, t := range trees {
			if t.holds(table, name) {
				return t, true, nil
			}
		}
	}
	return Tree{}, false, nil
}

// holds tells whether a name without links lies in the tree, and is not covered there.
func (t Tree) holds(table Table, name string) bool {
	if t.Path == "/" {
		return true
	}
	for _, one := range table.NamesUnder(name, t.Path) {
		if !t.covers(one, t.Path) {
			return true
		}
	}
	if t.ID.Inode == 0 {
		return false
	}
	for dir := name; dir != "/"; dir = filepath.Dir(dir) {
		if id, ok := identityAt(dir); ok && t.ID.IsAfterBoot(id) && !t.covers(name, dir) {
			return true
		}
	}
	return false
}

// identityAt is what a name without links is of; ok is false where there is nothing that has an identity.
func identityAt(name string) (id Identity, ok bool) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Identity{}, false
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	st, err := stat(fd)
	if err != nil {
		return Identity{}, false
	}
	id, err = identity(fd, st)
	return id, err == nil
}
