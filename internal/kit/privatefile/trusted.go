package privatefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// Trusted is a file of which nobody but root and this user decides what is in it.
type Trusted struct {
	Data     []byte
	Mode     fs.FileMode // its permissions
	Modified time.Time
}

// ReadTrusted reads a file, of at most a number of bytes, that says what is done with this user's
// rights. what is what it is, "the configuration file". It is fault.ErrForbidden if another user could
// have written it: because it is theirs, or they may write to it, or to a directory on its way, in
// which they could put another in its place, or have made a link on its way. A file that is not there
// is fs.ErrNotExist, but only where nobody else could have taken it away. A writer to trees is
// somebody else, too: a file below one, or that is reached through a link there, is refused
// (hostpath.Within).
func ReadTrusted(what, path string, most int64, trees []hostpath.Tree) (Trusted, error) {
	to, err := trustedPlace(what, path, trees)
	if err != nil {
		return Trusted{}, err
	}
	file, err := hostpath.Open(to, hostpath.Identity{})
	if _, other := errors.AsType[*hostpath.TypeError](err); other || err == nil && file.ID.Type != hostpath.File {
		return Trusted{}, refuseFile(what, path, "it is no regular file")
	}
	if err != nil {
		return Trusted{}, unread(err, what, path)
	}
	defer file.Close()
	var info unix.Stat_t
	if err := unix.Fstat(file.Fd(), &info); err != nil {
		return Trusted{}, unread(err, what, path)
	}
	if err := checkStat(what, path, to, &info); err != nil { // of what is open: something may have its name since
		return Trusted{}, err
	}
	data, err := file.ReadFile(most)
	if err != nil {
		return Trusted{}, unread(err, what, path)
	}
	return Trusted{Data: data, Mode: fs.FileMode(info.Mode & 0o777), Modified: time.Unix(info.Mtim.Unix())}, nil
}

// trustedPlace is where a path leads, which nobody else decides.
func trustedPlace(what, path string, trees []hostpath.Tree) (to string, err error) {
	if err := checkTrees(what, path, trees); err != nil {
		return "", err
	}
	to, links, missing := hostpath.Links(path)
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return "", unread(missing, what, path)
	}
	for _, link := range links {
		if err := checkPlace(what, path, link); err != nil {
			return "", err
		}
	}
	if missing != nil {
		if _, err := os.Lstat(path); err == nil {
			return "", refuseFile(what, path, "it is a link that leads to nothing, so that whoever may make a file there decides what it is; put the file itself there")
		}
		if err := checkDir(what, path, filepath.Dir(filepath.Clean(path))); err != nil {
			return "", err
		}
		return "", unread(missing, what, path)
	}
	if err := checkPlace(what, path, to); err != nil {
		return "", err
	}
	return to, checkTrees(what, to, trees) // of what is opened: a link may lead elsewhere by now
}

// checkTrees refuses what a sandbox could have written.
func checkTrees(what, path string, trees []hostpath.Tree) error {
	tree, theirs, err := hostpath.Within(path, trees)
	switch {
	case err != nil:
		return unread(err, what, path)
	case theirs && tree.Path == "/":
		return refuseFile(what, path, "where sandboxes may write, or could, is not known, because the record of that can't be read")
	case theirs:
		return refuseFile(what, path, fmt.Sprintf("it is reached under %s, where a sandbox may write, or could, so that an agent may decide what is in it; move it out, and name its new place", tree.Path))
	}
	return nil
}

// CheckDir returns fault.ErrForbidden if somebody other than root and this user could put another
// directory in the place of one, or in the place of one on its way. A file that is not there is nobody's.
func CheckDir(what, dir string) error { return checkDir(what, dir, dir) }

// checkDir does what CheckDir does, for a directory on the way of a path, by whatever links it is reached.
func checkDir(what, path, dir string) error {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		to, links, err := hostpath.Links(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unread(err, what, path)
		}
		for _, link := range links {
			if err := checkPlace(what, path, link); err != nil {
				return err
			}
		}
		if err == nil {
			return checkWay(what, path, to)
		}
	}
}

// checkPlace looks at a name, which may be a link, and at the directories on its way.
func checkPlace(what, path, name string) error {
	if err := checkWay(what, path, filepath.Dir(name)); err != nil {
		return err
	}
	return checkOne(what, path, name)
}

// checkWay looks at a directory and those above it, from the top, so that each is in one that
// nobody else can change.
func checkWay(what, path, dir string) error {
	if parent := filepath.Dir(dir); parent != dir {
		if err := checkWay(what, path, parent); err != nil {
			return err
		}
	}
	return checkOne(what, path, dir)
}

// checkOne looks at one name. Of a link's mode nothing is meant, and where everybody may write but
// only the owner rename, as in /tmp, what is there is its owner's.
func checkOne(what, path, name string) error {
	var info unix.Stat_t
	err := unix.Lstat(name, &info)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return unread(&fs.PathError{Op: "lstat", Path: name, Err: err}, what, path)
	}
	if err := checkStat(what, path, name, &info); err != nil || info.Mode&0o020 == 0 || !saysWho(&info) {
		return err
	}
	theirs, err := hostpath.OthersByList(name)
	if err != nil {
		return unread(&fs.PathError{Op: "getxattr", Path: name, Err: err}, what, path)
	}
	if theirs {
		return refuseFile(what, path, fmt.Sprintf("others can write to %s by its access control list, so that what is there may be theirs: look at it, then setfacl -b it", name))
	}
	return nil
}

// saysWho tells whether a mode says who may change what is there.
func saysWho(info *unix.Stat_t) bool {
	kind := info.Mode & unix.S_IFMT
	return kind != unix.S_IFLNK && (kind != unix.S_IFDIR || info.Mode&unix.S_ISVTX == 0)
}

// checkStat checks what is known of a file.
func checkStat(what, path, name string, info *unix.Stat_t) error {
	if info.Uid != 0 && int(info.Uid) != os.Geteuid() {
		return refuseFile(what, path, fmt.Sprintf("%s belongs to another user, number %d, who decides what is there; chown it to user %d, or to root", name, info.Uid, os.Geteuid()))
	}
	if !saysWho(info) {
		return nil
	}
	if info.Mode&0o002 != 0 || info.Mode&0o020 != 0 && info.Gid != 0 && int(info.Gid) != os.Getegid() {
		mode := "go-w"
		if info.Mode&unix.S_IFMT == unix.S_IFREG {
			mode = "600"
		}
		return refuseFile(what, path, fmt.Sprintf("others can write to %s (its mode is %#o), so that what is there may be theirs: look at it, then chmod %s it", name, info.Mode&0o7777, mode))
	}
	return nil
}
