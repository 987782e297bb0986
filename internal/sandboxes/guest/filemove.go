package guest

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// moveFile renames, over what is there already. From one file system to another a
// regular file is copied.
func (c *fileCall) moveFile() (*channel.FileInfo, error) {
	target, err := cleanPath(c.user, c.To)
	if err != nil {
		return nil, err
	}
	var info *channel.FileInfo
	err = c.doAt(search{}, func(from *filePlace) error {
		if _, err := from.statPlace(); err != nil {
			return err
		}
		to, err := locate(c.agent.config.Root, target, search{parents: true})
		if err != nil {
			return explainFile(target, err)
		}
		defer to.closePlace()
		err = unix.Renameat(from.dir, from.name, to.dir, to.name)
		if errors.Is(err, unix.EXDEV) {
			err = moveFile(from, to)
		}
		if err == nil {
			info, err = c.infoOf(to)
		}
		return err
	})
	return info, err
}

// moveFile copies a regular file and then removes it.
func moveFile(from, to *filePlace) error {
	source, stat, err := openRegular(from)
	if errors.Is(err, errIrregular) {
		return unix.EXDEV
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := createBeside(to)
	if err != nil {
		return explainFile(to.path, err)
	}
	defer target.discard()
	if _, err := io.Copy(target.file, source); err != nil {
		return explainFile(to.path, err)
	}
	if err := target.putInPlace(stat.Mode&modeBits, nil); err != nil {
		return explainFile(to.path, err)
	}
	return unix.Unlinkat(from.dir, from.name, 0)
}

// errIrregular is said of what is no regular file.
var errIrregular = errors.New("not a regular file")

// openRegular opens a file to be read. A pipe or a device is not opened at all:
// that may wait, or do something.
func openRegular(p *filePlace) (*os.File, unix.Stat_t, error) {
	stat, err := p.statPlace()
	if err != nil {
		return nil, stat, err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, stat, errIrregular
	}
	fd, err := unix.Openat(p.dir, p.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, stat, err
	}
	file := os.NewFile(uintptr(fd), p.name)
	if err = unix.Fstat(fd, &stat); err == nil && stat.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errIrregular
	}
	if err != nil {
		_ = file.Close()
		return nil, stat, err
	}
	return file, stat, nil
}
