package hostpath

import (
	"path/filepath"
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
	// Marks are those of what is covered, in the order of Covered, with a slash between each two, as long as
	// a sandbox that may write in the tree runs: see Cover. "": none runs, and the names alone count.
	Marks string
}

// hasRoot tells whether a directory on the way is the tree's root, under whatever name.
func (t Tree) hasRoot(path string, id Identity) bool {
	return t.Path == path || t.ID.Inode != 0 && t.ID.IsAfterBoot(id)
}

// Within is Lookup.Within for one path.
func Within(path string, trees []Tree) (Tree, bool, error) {
	lookup, err := NewLookup(trees)
	if err != nil {
		return Tree{}, false, err
	}
	tree, is := lookup.Within(path)
	return tree, is, nil
}

// Lookup answers for many paths, at one moment, in which tree they lie: it reads the table of mounts and
// looks at each directory once. Not safe for concurrent use.
type Lookup struct {
	table Table
	trees []Tree
	shown []Table             // of each tree: see Table.shownIn
	ids   map[string]Identity // of names without links; zero where nothing is that has one
	marks map[string]Mark     // of names without links
}

// NewLookup prepares a Lookup. Without trees it reads nothing.
func NewLookup(trees []Tree) (*Lookup, error) {
	l := &Lookup{trees: trees, ids: map[string]Identity{}, marks: map[string]Mark{}}
	if len(trees) == 0 {
		return l, nil
	}
	var err error
	if l.table, err = ReadTable(); err != nil {
		return nil, err
	}
	for _, t := range trees {
		l.shown = append(l.shown, l.table.shownIn(t.Path))
	}
	return l, nil
}

// Within tells in which tree somebody could have decided what a path leads to: it lies there, or a
// link on its way does. A path that leads nowhere is judged as far as it leads, since somebody could make the
// rest. Names that a tree covers are not in it.
func (l *Lookup) Within(path string) (Tree, bool) {
	if len(l.trees) == 0 {
		return Tree{}, false
	}
	resolved, names, err := leadsTo(path)
	if names = append(names, resolved); err != nil {
		names = append(names, filepath.Clean(path))
	}
	for _, name := range names {
		if tree, is := l.treeOf(name); is {
			return tree, true
		}
	}
	return Tree{}, false
}

// treeOf tells which tree a name without links lies in that does not cover it.
func (l *Lookup) treeOf(name string) (Tree, bool) {
	spot, known := l.table.SpotOf(name)
	for i, t := range l.trees {
		if t.Path == "/" {
			return t, true
		}
		for _, one := range l.shown[i].namesOf(name, t.Path, spot, known) {
			if !l.isCovered(t, one, t.Path) {
				return t, true
			}
		}
	}
	for dir := name; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		id := l.identity(dir)
		for _, t := range l.trees {
			if !id.IsZero() && t.ID.Inode != 0 && t.ID.IsAfterBoot(id) && !l.isCovered(t, name, dir) {
				return t, true
			}
		}
	}
	return Tree{}, false
}

// isCovered tells whether a name at or below a tree's root, which may have another name by now, is covered.
func (l *Lookup) isCovered(t Tree, name, root string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(name, root), "/"), "/")
	if first == "" {
		return false
	}
	was, covered := t.markOf(first)
	return covered && (was == "" || was.Is(l.markOf(filepath.Join(root, first))))
}

func (l *Lookup) markOf(name string) Mark {
	m, known := l.marks[name]
	if !known {
		m = MarkAt(name)
		l.marks[name] = m
	}
	return m
}

func (l *Lookup) identity(name string) Identity {
	id, known := l.ids[name]
	if !known {
		id, _ = identityAt(name)
		l.ids[name] = id
	}
	return id
}

// identityAt is what a name without links is of; ok is false where there is nothing that has an identity.
func identityAt(name string) (id Identity, ok bool) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Identity{}, false
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	st, err := statFD(fd)
	if err != nil {
		return Identity{}, false
	}
	id, err = identity(fd, st)
	return id, err == nil
}
