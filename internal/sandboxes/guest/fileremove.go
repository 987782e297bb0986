package guest

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// removeRounds is how often a directory is emptied again into which somebody
// writes meanwhile.
const removeRounds = 10

func (c *fileCall) removeFile() (*channel.FileInfo, error) {
	return nil, c.doAt(search{}, func(p *filePlace) error {
		if p.name == "." {
			return invalidFile("the root directory can't be removed")
		}
		err := unix.Unlinkat(p.dir, p.name, 0)
		if !errors.Is(err, unix.EISDIR) {
			return err
		}
		r := &remover{}
		if err := r.enterDir(p.dir, p.name); err != nil {
			return err
		}
		defer r.closeDirs()
		if err := r.emptyDir(); err != nil {
			return err
		}
		return unix.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR)
	})
}

// remover empties a directory and those below it. It has one of them open at a
// time, however deep they lie, and never leaves the tree: no link is followed,
// and on the way up it checks that it comes to where it came from.
type remover struct {
	at    *os.File
	above []level // from the top down
	again int     // directories that were not empty after all
}

// level is a directory above the one that is being emptied.
type level struct {
	dev, ino uint64
	child    string // that was entered from it
}

func (r *remover) closeDirs() { _ = r.at.Close() }

// enterDir opens the directory of a name.
func (r *remover) enterDir(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if r.at != nil {
		_ = r.at.Close()
	}
	r.at = os.NewFile(uintptr(fd), name)
	return nil
}

// dirFD is valid as long as at is open.
func (r *remover) dirFD() int {
	raw, err := r.at.SyscallConn()
	fd := -1
	if err == nil {
		_ = raw.Control(func(n uintptr) { fd = int(n) })
	}
	return fd
}

// emptyDir removes all that is below the directory that was entered first.
func (r *remover) emptyDir() error {
	for {
		child, err := r.sweepDir()
		if err != nil {
			return err
		}
		switch {
		case child != "":
			err = r.goDown(child)
		case len(r.above) == 0:
			return nil
		default:
			err = r.goUp()
		}
		if err != nil {
			return err
		}
	}
}

// sweepDir removes what is no directory, and returns the name of one that is.
func (r *remover) sweepDir() (string, error) {
	if _, err := r.at.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	fd := r.dirFD()
	for {
		found, err := r.at.Readdirnames(512)
		for _, name := range found {
			err := unix.Unlinkat(fd, name, 0)
			switch {
			case errors.Is(err, unix.EISDIR):
				return name, nil
			case err != nil && !errors.Is(err, unix.ENOENT):
				return "", err
			}
		}
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
	}
}

func (r *remover) goDown(child string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(r.dirFD(), &stat); err != nil {
		return err
	}
	if err := r.enterDir(r.dirFD(), child); err != nil {
		return err
	}
	r.above = append(r.above, level{dev: stat.Dev, ino: stat.Ino, child: child})
	return nil
}

// goUp leaves an empty directory and removes it.
func (r *remover) goUp() error {
	above := r.above[len(r.above)-1]
	r.above = r.above[:len(r.above)-1]
	if err := r.enterDir(r.dirFD(), ".."); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(r.dirFD(), &stat); err != nil {
		return err
	}
	if stat.Dev != above.dev || stat.Ino != above.ino {
		return &fileError{"", "a directory was moved away while it was being removed; try again"}
	}
	err := unix.Unlinkat(r.dirFD(), above.child, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOTEMPTY) && r.again < removeRounds {
		r.again++
		return nil // the sweep finds it again
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
