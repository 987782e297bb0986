package hostpath

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Mark tells a file or directory from whatever gets its name later, also from one that gets its inode: its
// type, device, inode and time of birth, with a comma between each two, and the time of its last change
// where the file system knows of no birth.
type Mark string

// Marks of which nothing has one: AnyMark is of a cover that is to be laid anew, over whatever is there then,
// and GoneMark of what could not be found.
const (
	AnyMark  Mark = "any"
	GoneMark Mark = "gone"
)

// noBirth is a mark's fourth part where the file system does not say when something was made.
const noBirth = "0"

// Is tells whether what has a mark now is what had this one. A device may get another number when the host
// starts, so that the number counts only where there is no time of birth.
func (m Mark) Is(now Mark) bool {
	was, is := strings.Split(string(m), ","), strings.Split(string(now), ",")
	if len(was) == len(is) && len(is) > 3 && was[3] != noBirth {
		was[1] = is[1]
	}
	return len(was) > 1 && slices.Equal(was, is)
}

// Mark is that of what is open.
func (p *Path) Mark() (Mark, error) { return markOf(p.Fd()) }

func markOf(fd int) (Mark, error) {
	st, err := statFD(fd)
	if err != nil {
		return "", err
	}
	id, err := identity(fd, st)
	if err != nil {
		return "", err
	}
	changed := int64(0)
	if id.Birth == 0 {
		changed = st.Ctime.Sec*1e9 + int64(st.Ctime.Nsec)
	}
	return Mark(fmt.Sprintf("%s,%d,%d,%d,%d", id.Type, id.Device, id.Inode, id.Birth, changed)), nil
}

// MarkAt is that of what has a name without links; GoneMark where nothing is that has one.
func MarkAt(name string) Mark {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return GoneMark
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written to it
	m, err := markOf(fd)
	if err != nil {
		return GoneMark
	}
	return m
}

// Cover is a copy of a tree in which these names are covered, each with the mark of what the cover lies over;
// "" and AnyMark where the name alone counts. A cover is a mount: whoever of the host removes or replaces what it lies
// over takes it away with that, and what has the name then lies open to whoever may write in the tree.
func (t Tree) Cover(names map[string]Mark) Tree {
	sorted := slices.Sorted(maps.Keys(names))
	var marks []string
	known := false
	for _, name := range sorted {
		mark := names[name]
		if mark == AnyMark {
			mark = ""
		}
		marks = append(marks, string(mark))
		known = known || mark != ""
	}
	t.Covered, t.Marks = strings.Join(sorted, "/"), ""
	if known {
		t.Marks = strings.Join(marks, "/")
	}
	return t
}

// coveredMarks are the covered names with their marks.
func (t Tree) coveredMarks() map[string]Mark {
	all := map[string]Mark{}
	if t.Covered == "" {
		return all
	}
	marks := strings.Split(t.Marks, "/")
	for i, name := range strings.Split(t.Covered, "/") {
		switch {
		case t.Marks == "":
			all[name] = ""
		case i < len(marks):
			all[name] = Mark(marks[i])
		}
	}
	return all
}

// markOf is a covered name's mark, which may be "".
func (t Tree) markOf(name string) (m Mark, covered bool) {
	m, covered = t.coveredMarks()[name]
	return m, covered
}

// Lost tells whether something has the name of what a tree covers, or nothing has, that is not what was covered.
func (t Tree) Lost() bool { return len(t.Settled().coveredMarks()) < len(t.coveredMarks()) }

// Settled is a copy of a tree as it counts when nobody writes in it any more: what still is what was covered was
// covered all the time, whatever is put there from now on. The rest was not.
func (t Tree) Settled() Tree {
	names := map[string]Mark{}
	for name, was := range t.coveredMarks() {
		if was == "" || was.Is(MarkAt(filepath.Join(t.Path, name))) {
			names[name] = ""
		}
	}
	return t.Cover(names)
}
