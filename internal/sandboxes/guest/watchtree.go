package guest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// maxWatched directories of one watch; those past it are not watched, and the
// host is told that something may be missing.
const maxWatched = 8192

const watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// watchTree is the kernel's watch over a directory and, if it is recursive, over
// those below it. The kernel watches single directories, so new ones are added as
// they come; what was made in one before it was added is told of as created,
// which may be the second time.
//
// Only the goroutine in read touches dirs and numbers once it has begun.
type watchTree struct {
	root      string
	recursive bool
	file      *os.File
	dirs      map[int]string // by the kernel's number, relative to root; "" is the root
	numbers   map[string]int
	proc      uint64
	full      bool
	renamed   uint32 // the cookie of a file of ours that is getting its name
	fresh     bool   // and whether there was none of that name
}

// newWatchTree watches root, a path without symbolic links. To be called with
// the user's rights.
func newWatchTree(root string, recursive bool) (*watchTree, error) {
	file, err := openInotify()
	if err != nil {
		return nil, err
	}
	t := &watchTree{root: root, recursive: recursive, file: file, dirs: map[int]string{}, numbers: map[string]int{}, proc: procDevice()}
	if err := t.addDir("", nil); err != nil {
		t.closeTree()
		return nil, err
	}
	return t, nil
}

// closeTree ends a read. It may be called twice.
func (t *watchTree) closeTree() { _ = t.file.Close() }

// addDir watches a directory and, if the tree is recursive, those below it. found
// is told of everything that is there already; nil: nobody.
func (t *watchTree) addDir(dir string, found *eventQueue) error {
	if len(t.dirs) >= maxWatched {
		t.full = true
		return nil
	}
	number, err := t.watchNumber(path.Join(t.root, dir))
	if err != nil {
		return err
	}
	t.dirs[number], t.numbers[dir] = dir, number
	if !t.recursive {
		return nil
	}
	entries, err := os.ReadDir(path.Join(t.root, dir))
	if err != nil {
		return nil //nolint:nilerr // it may be watched but not listed
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if temporary, _ := isTemporary(entry.Name()); found != nil && !temporary {
			found.pushEvents(channel.FileEvent{Name: name, Change: channel.ChangeCreate})
		}
		if entry.IsDir() && !t.foreign(name) {
			if err := t.addDir(name, found); err != nil {
				t.full = true // not the user's to watch, gone, or past a limit
			}
		}
	}
	return nil
}

// watchNumber has the kernel watch a directory.
func (t *watchTree) watchNumber(dir string) (int, error) {
	number := 0
	err := t.control(func(fd int) (err error) {
		number, err = unix.InotifyAddWatch(fd, dir, watchMask|unix.IN_DONT_FOLLOW)
		return err
	})
	if errors.Is(err, unix.ENOSPC) {
		err = &fileError{"", "the sandbox is at its limit of watched directories"}
	}
	return number, err
}

// control has the descriptor, as long as the tree is open.
func (t *watchTree) control(do func(fd int) error) error {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// foreign tells whether a directory is of the process table, which tells nothing.
func (t *watchTree) foreign(dir string) bool {
	var stat unix.Stat_t
	return unix.Lstat(path.Join(t.root, dir), &stat) != nil || (t.proc != 0 && stat.Dev == t.proc)
}

// forgetDir ends the watch over a directory that has another name now, and over
// those below it.
func (t *watchTree) forgetDir(dir string) {
	for name, number := range t.numbers {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			_ = t.control(func(fd int) error { _, err := unix.InotifyRmWatch(fd, uint32(number)); return err }) // it may be gone
			delete(t.numbers, name)
			delete(t.dirs, number)
		}
	}
}

// readEvents puts changes into the queue until the tree is closed or its root is gone.
// look calls a function with the user's rights.
func (t *watchTree) readEvents(look func(func()), queue *eventQueue) {
	buf := make([]byte, 64<<10)
	for {
		n, err := t.file.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			event := inotifyEvent{
				number: int(int32(binary.NativeEndian.Uint32(rest))), mask: binary.NativeEndian.Uint32(rest[4:]),
				cookie: binary.NativeEndian.Uint32(rest[8:]),
			}
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			if size > len(rest) {
				return
			}
			name, _, _ := bytes.Cut(rest[unix.SizeofInotifyEvent:size], []byte{0})
			event.name, rest = string(name), rest[size:]
			if !t.takeEvent(event, look, queue) {
				return
			}
		}
		if t.full {
			t.full = false
			queue.noteLoss()
		}
	}
}

// inotifyEvent is one of the kernel's events.
type inotifyEvent struct {
	number int
	mask   uint32
	cookie uint32
	name   string
}

func (e inotifyEvent) hasMask(mask uint32) bool { return e.mask&mask != 0 }

// takeEvent looks at one event; false if the watch is over.
func (t *watchTree) takeEvent(e inotifyEvent, look func(func()), queue *eventQueue) bool {
	if e.hasMask(unix.IN_Q_OVERFLOW) {
		queue.noteLoss()
		look(func() { t.renewWatches() })
		return true
	}
	dir, known := t.dirs[e.number]
	if !known {
		return true
	}
	if e.hasMask(unix.IN_IGNORED | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_UNMOUNT) {
		return t.dirEnded(e, dir, queue)
	}
	if e.name == "" {
		return true // of the directory itself; the one above tells
	}
	name := path.Join(dir, e.name)
	if t.takeOwnWrite(e, name, queue) {
		return true
	}
	if change := changeOf(e.mask); change != "" {
		queue.pushEvents(channel.FileEvent{Name: name, Change: change})
	}
	if t.recursive && e.hasMask(unix.IN_ISDIR) {
		if e.hasMask(unix.IN_MOVED_FROM) {
			t.forgetDir(name)
		}
		if e.hasMask(unix.IN_CREATE | unix.IN_MOVED_TO) {
			look(func() { t.full = t.addDir(name, queue) != nil || t.full })
		}
	}
	return true
}

// dirEnded is of a directory that is gone. Without its root the watch is over.
func (t *watchTree) dirEnded(e inotifyEvent, dir string, queue *eventQueue) bool {
	if dir == "" {
		change := channel.ChangeRemove
		if e.hasMask(unix.IN_MOVE_SELF) {
			change = channel.ChangeRename
		}
		queue.pushEvents(channel.FileEvent{Name: ".", Change: change})
		return false
	}
	if !e.hasMask(unix.IN_MOVE_SELF) { // else it is still there, under a name that an event above tells
		delete(t.dirs, e.number)
		delete(t.numbers, dir)
	}
	return true
}

// takeOwnWrite takes an event of a file that the agent is writing for the
// host. A watcher is told of a write, and where there was no such file of its
// creation and its mode, as if it had been made, given to its user and written in
// place.
func (t *watchTree) takeOwnWrite(e inotifyEvent, name string, queue *eventQueue) bool {
	if temporary, fresh := isTemporary(e.name); temporary {
		if e.hasMask(unix.IN_MOVED_FROM) {
			t.renamed, t.fresh = e.cookie, fresh
		}
		return true
	}
	if !e.hasMask(unix.IN_MOVED_TO) || e.cookie == 0 || e.cookie != t.renamed {
		return false
	}
	t.renamed = 0
	changes := []channel.FileEvent{{Name: name, Change: channel.ChangeWrite}}
	if t.fresh {
		changes = []channel.FileEvent{
			{Name: name, Change: channel.ChangeCreate}, {Name: name, Change: channel.ChangeChmod}, {Name: name, Change: channel.ChangeWrite},
		}
	}
	queue.pushEvents(changes...)
	return true
}

// renewWatches watches directories that came while events were lost.
func (t *watchTree) renewWatches() {
	if t.recursive {
		t.full = t.addDir("", nil) != nil || t.full
	}
}

func changeOf(mask uint32) channel.Change {
	switch {
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		return channel.ChangeCreate
	case mask&unix.IN_MODIFY != 0:
		return channel.ChangeWrite
	case mask&unix.IN_DELETE != 0:
		return channel.ChangeRemove
	case mask&unix.IN_MOVED_FROM != 0:
		return channel.ChangeRename
	case mask&unix.IN_ATTRIB != 0:
		return channel.ChangeChmod
	default:
		return ""
	}
}
