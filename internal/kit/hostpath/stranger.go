package hostpath

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Stranger is a place in which somebody other than root and this process's user decides what is there. The
// record of where sandboxes could write is an installation's own, so that nothing else is known of what another
// user's agents did there.
type Stranger struct {
	Place string // absolute, without links
	UID   int    // whose it is; -1: it is trusted users', and others may write to it
}

// String is a sentence's part: "/srv/p belongs to user 1000".
func (s Stranger) String() string {
	if s.UID < 0 {
		return "others can write to " + s.Place
	}
	return fmt.Sprintf("%s belongs to user %d", s.Place, s.UID)
}

// StrangerOf tells where somebody other than root and this process's user could have decided what a path leads to: by what
// lies there, by a directory on the way, or by a link. nil: nowhere. A path that leads nowhere is judged as far as it leads, and by
// who could make the rest there: in a directory such as /tmp everybody can.
func StrangerOf(path string) (*Stranger, error) {
	w, err := beginWalk(path, nil)
	if err != nil {
		return nil, err
	}
	defer w.closeWalk()
	w.follows, w.notes = true, true
	missing := false
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		target, err := w.stepTo(rest[0])
		if errors.Is(err, fs.ErrNotExist) {
			missing = true
			break
		}
		if err != nil {
			return nil, err
		}
		rest = append(target, rest[1:]...)
	}
	if w.other != nil {
		return w.other, nil
	}
	if s, err := w.stranger(); s != nil || err != nil || !missing {
		return s, err
	}
	last := w.stack[len(w.stack)-1]
	last.stat.Mode &^= unix.S_ISVTX // it keeps others from renaming what is there, and nobody from making what is not
	if open, err := last.isOpenToOthers(); !open || err != nil {
		return nil, err
	}
	return &Stranger{Place: last.name, UID: -1}, nil
}

// stranger is the first place on the way so far, and then of others, in which somebody else decides. Every directory counts:
// whoever may rename one can put a link of somebody trusted where it was not meant to be.
func (w *pathWalk) stranger(others ...walkPlace) (*Stranger, error) {
	for _, p := range slices.Concat(w.stack, others) {
		uid, root := p.stat.Uid, w.stack[0].stat.Uid // who owns / decides everything anyway
		if uid != 0 && int(uid) != os.Geteuid() && (uid != root || root == overflowUID() && !isRoots(p.name)) {
			return &Stranger{Place: p.name, UID: int(uid)}, nil
		}
		open, err := p.isOpenToOthers()
		if err != nil {
			return nil, &fs.PathError{Op: "stat", Path: p.name, Err: err}
		}
		if open {
			return &Stranger{Place: p.name, UID: -1}, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// overflowUID is what a user namespace shows for each user that it has no number for: where it is root's, it is also
// that of every other user of the host.
var overflowUID = sync.OnceValue(func() uint32 { //nolint:gochecknoglobals // a constant of the kernel that runs
	const usual = 65534
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usual
	}
	uid, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	if err != nil {
		return usual
	}
	return uint32(uid)
})

// isRoots tells of a path without links whether root alone makes what has it, by the usual order of a host: the names in /, and
// the host's own programs and settings.
func isRoots(name string) bool {
	first, below, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	return below == "" || slices.Contains([]string{"bin", "boot", "etc", "lib", "lib32", "lib64", "libx32", "nix", "sbin", "usr"}, first)
}

// isOpenToOthers tells whether others than its owner, root's group and this process's may write what is there. Where everybody
// may write but only the owner rename, as in /tmp, what is there is its owner's. Nobody writes where a mount is read-only.
func (p walkPlace) isOpenToOthers() (bool, error) {
	kind, mode := p.stat.Mode&unix.S_IFMT, p.stat.Mode
	if mode&0o022 == 0 || kind != unix.S_IFDIR && kind != unix.S_IFREG || kind == unix.S_IFDIR && mode&unix.S_ISVTX != 0 {
		return false, nil
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(p.fd, &system); err != nil || system.Flags&unix.ST_RDONLY != 0 {
		return false, err
	}
	if mode&0o002 != 0 || p.stat.Gid != 0 && int(p.stat.Gid) != os.Getegid() {
		return true, nil
	}
	return othersByList(fmt.Sprintf("/proc/self/fd/%d", p.fd), unix.Getxattr)
}
