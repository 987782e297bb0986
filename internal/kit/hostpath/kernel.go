package hostpath

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// missing tells whether there is no openat2 here: kernels before 5.6, and some filters of
// system calls, have none.
var missing = sync.OnceValue(func() bool { //nolint:gochecknoglobals // a fact of the host, found out once
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if err == nil {
		_ = unix.Close(fd)
	}
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
})

// openBelow opens a relative name in a directory (O_PATH), and is ELOOP where a link is on the
// way, also at its end.
func openBelow(dir int, rel string) (int, error) {
	if rel == "" {
		rel = "."
	}
	if missing() {
		return stepwise(dir, rel)
	}
	return atOnce(dir, rel)
}

// atOnce is below by openat2.
func atOnce(dir int, rel string) (int, error) {
	how := unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(dir, rel, &how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // something was renamed meanwhile
			continue
		case err != nil:
			return -1, err
		}
		return notLink(fd)
	}
}

// notLink closes a descriptor of a link: NO_SYMLINKS and NOFOLLOW open the last one itself.
func notLink(fd int) (int, error) {
	st, err := statFD(fd)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = unix.ELOOP
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// stepwise is below without openat2: one name at a time.
func stepwise(dir int, rel string) (int, error) {
	at, err := unix.Openat(dir, ".", unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			_ = unix.Close(at)
			return -1, unix.EXDEV
		}
		next, err := unix.Openat(at, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		_ = unix.Close(at)
		if err != nil {
			return -1, err
		}
		if at, err = notLink(next); err != nil {
			return -1, err
		}
	}
	return at, nil
}

func statFD(fd int) (st unix.Statx_t, err error) {
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_SYNC_AS_STAT, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st)
	return st, err
}

// errType: there is no identity of it.
var errType = errors.New("neither a file nor a directory")

func identity(fd int, st unix.Statx_t) (Identity, error) {
	id := Identity{Device: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		id.Type = Dir
	case unix.S_IFREG:
		id.Type = File
	default:
		return Identity{}, errType
	}
	if st.Mask&unix.STATX_BTIME != 0 && steady(fd) {
		id.Birth = st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
	}
	return id, nil
}

// steady tells whether times of birth stay what they are. In an overlay a file is born once
// more when it is first written to.
func steady(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) == nil && fs.Type != unix.OVERLAYFS_SUPER_MAGIC
}

// readlink reads the link itself that a descriptor is of.
func readlink(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	return string(buf[:max(n, 0)]), err
}

func readAtMost(f *os.File, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s has more than %d bytes", name, most)
	}
	return data, err
}
