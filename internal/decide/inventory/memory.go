package inventory

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// Memory spares inventories what they have read before: to look at a directory
// or file costs a fifth of reading it, and most of what a template brings never
// changes. It knows what it read by all that the kernel keeps of it; of that the
// time of the last change of the inode can't be set by a command. Its owner sees to it that one
// inventory uses it at a time.
type Memory struct {
	layouts []Layout
	now     func() time.Time
	open    bool // something was looked at since it was set to false that is not closed
	dirs    map[string]dirSeen
	heads   map[string]headSeen
}

// memoryMost bounds each of both, in entries; past it everything is forgotten.
const memoryMost = 50_000

// settledAfter is how long something must have been unchanged to be remembered:
// clocks of file systems are coarse, and two changes within one tick look like one.
const settledAfter = 2 * time.Second

// look is what the kernel keeps of an inode.
type look struct {
	dev, ino     uint64
	mode, uid    uint32
	size         int64
	mtime, ctime unix.Timespec
}

type dirSeen struct {
	look

	dirs, others []string
}

type headSeen struct {
	look

	kind   string
	parsed any
}

// NewMemory remembers nothing yet; layouts are those of the inventories that it serves.
func NewMemory(layouts []Layout) *Memory {
	return &Memory{layouts: layouts, now: time.Now, dirs: map[string]dirSeen{}, heads: map[string]headSeen{}}
}

// lookAt follows no link.
func lookAt(path string) (look, bool) {
	st, err := lstatLong(path)
	if err != nil {
		return look{}, false
	}
	return look{
		dev: uint64(st.Dev), ino: st.Ino, mode: st.Mode, uid: st.Uid, size: st.Size, mtime: st.Mtim, ctime: st.Ctim, //nolint:unconvert // another width elsewhere
	}, true
}

// closed tells whether only root may write to it.
func (l look) closed() bool { return l.uid == 0 && l.mode&0o022 == 0 }

// settled tells whether another change could not look the same.
func (m *Memory) settled(l look) bool {
	before := m.now().Add(-settledAfter)
	return time.Unix(l.mtime.Unix()).Before(before) && time.Unix(l.ctime.Unix()).Before(before)
}

// lookAt looks at a path, and remembers whether all that is there was closed. A file that is not
// there could not have been changed, but be made: that is its directory's.
func (m *Memory) lookAt(path string) (look, bool) {
	l, there := lookAt(path)
	m.open = m.open || there && !l.closed()
	return l, there
}

// readDir gives the names of the directories in one, and those of other entries that
// an inventory looks at.
func (m *Memory) readDir(path string) (dirs, others []string, err error) {
	before, there := m.lookAt(path)
	if seen, ok := m.dirs[path]; ok && there && seen.look == before {
		return seen.dirs, seen.others, nil
	}
	entries, err := readDir(path)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range entries {
		switch {
		case entry.IsDir():
			dirs = append(dirs, entry.Name())
		case m.tellsOfPackage(entry):
			others = append(others, entry.Name())
		}
	}
	if after, ok := lookAt(path); ok && there && before == after && m.settled(after) && len(path) <= channel.MaxInventoryPlace {
		if len(m.dirs) >= memoryMost {
			clear(m.dirs)
		}
		m.dirs[path] = dirSeen{look: after, dirs: dirs, others: others}
	}
	return dirs, others, nil
}

// tellsOfPackage reports whether an entry that is no directory may tell of a package.
func (m *Memory) tellsOfPackage(entry os.DirEntry) bool {
	return slices.ContainsFunc(m.layouts, func(l Layout) bool { return l.Tells(entry) })
}

// Recall gives what parse makes of the beginning of a file, or made before; path is without
// the walk's root. kind tells what it makes of it: a file may tell two things.
func Recall[T any](w *Walk, path, kind string, parse func(head []byte) T) (T, error) {
	return recall(w.memory, w.root+path, kind, parse)
}

func recall[T any](m *Memory, path, kind string, parse func(head []byte) T) (T, error) {
	before, there := m.lookAt(path)
	if seen, ok := m.heads[path]; ok && there && seen.kind == kind && seen.look == before {
		if parsed, ok := seen.parsed.(T); ok {
			return parsed, nil
		}
	}
	head, err := readHead(path)
	if err != nil {
		var none T
		return none, err
	}
	parsed := parse(head)
	if after, ok := lookAt(path); ok && there && before == after && m.settled(after) && len(path) <= channel.MaxInventoryPlace {
		if len(m.heads) >= memoryMost {
			clear(m.heads)
		}
		m.heads[path] = headSeen{look: after, kind: kind, parsed: parsed}
	}
	return parsed, nil
}

// metadataBytes is how much of a file is its beginning.
const metadataBytes = 64 << 10

// readHead reads the beginning of a file. Only a regular file is read, and never
// for longer than it takes.
func readHead(path string) ([]byte, error) {
	file, err := openLong(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return io.ReadAll(io.LimitReader(file, metadataBytes))
}
