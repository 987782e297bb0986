package guest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// A file is written under a name of its own beside the one that it gets, which
// tells a watch whether there was one before.
const (
	temporaryNew  = ".cofferdam-new-"
	temporaryOver = ".cofferdam-over-"
)

// isTemporary tells whether a name is of a file that is being written, and
// whether it will be a new one.
func isTemporary(name string) (temporary, fresh bool) {
	if strings.HasPrefix(name, temporaryNew) {
		return true, true
	}
	return strings.HasPrefix(name, temporaryOver), false
}

// writeFile makes a file of what the host sends, in place of the one that may be there, in one
// step. The rest of a write that does not come to its end is taken away. The last of several at
// once to come to its end wins.
func (c *fileCall) writeFile() error {
	file, mode, err := c.beginFile()
	if err != nil {
		return replyFile(c.stream, nil, explainFile(c.path, err))
	}
	defer func() { _ = actAs(c.user, func() error { file.discard(); return nil }) }()
	if err := replyFile(c.stream, nil, nil); err != nil {
		return err
	}
	err = c.receiveFile(file.file)
	if gone, ok := errors.AsType[*brokenStream](err); ok {
		return gone
	}
	var info *channel.FileInfo
	if err == nil {
		info, err = c.finishFile(file, mode)
	}
	return replyFile(c.stream, info, explainFile(c.path, err))
}

// finishFile gives the file its name, and to its user what is to be given.
func (c *fileCall) finishFile(file *newFile, mode uint32) (*channel.FileInfo, error) {
	given := -1
	if c.Give {
		fd, err := file.keepOpen()
		if err != nil {
			return nil, err
		}
		defer unix.Close(fd) //nolint:errcheck // nothing is written to it
		given = fd
	}
	if err := actAs(c.user, func() error { return file.putInPlace(mode, c.Metadata) }); err != nil {
		return nil, err
	}
	if c.Give {
		if err := c.giveToUser(append(file.made, given)); err != nil {
			return nil, err
		}
	}
	var info *channel.FileInfo
	err := actAs(c.user, func() (err error) {
		info, err = c.infoOf(file.filePlace)
		return err
	})
	return info, err
}

// giveToUser makes open files and directories the user's, which takes a right that only the
// agent has.
func (c *fileCall) giveToUser(open []int) error {
	owner := c.identity.user
	for _, fd := range open {
		if err := unix.Fchownat(fd, "", owner.UID, owner.GID, unix.AT_EMPTY_PATH); err != nil {
			return err
		}
	}
	return nil
}

// beginFile finds the place, looks whether the user may write there, and begins the
// new file. Its mode is the one asked for, else that of the old one.
func (c *fileCall) beginFile() (*newFile, uint32, error) {
	if err := checkMetadata(c.Metadata); err != nil {
		return nil, 0, err
	}
	var file *newFile
	mode := c.Mode & modeBits
	err := actAs(c.user, func() error {
		p, err := locate(c.agent.config.Root, c.path, search{follow: true, parents: true, give: c.Give})
		if err != nil {
			return err
		}
		old, err := c.replaceable(p)
		if err == nil {
			file, err = createBeside(p)
		}
		if err != nil {
			p.closePlace()
			return err
		}
		file.owned = true
		if mode == 0 {
			mode = old
		}
		return nil
	})
	return file, mode, err
}

// replaceable gives the permissions of the regular file at a place, if the user
// may write it, or those of a new file. For what is to be given it must be the one's
// to whom it is given.
func (c *fileCall) replaceable(p *filePlace) (uint32, error) {
	stat, err := p.statPlace()
	switch {
	case errors.Is(err, unix.ENOENT):
		return 0o644, nil
	case err != nil:
		return 0, err
	case stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return 0, unix.EISDIR
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return 0, invalidFile("%.300q is not a regular file, and only those can be written", p.path)
	case c.Give && int(stat.Uid) != c.identity.user.UID:
		return 0, unix.EACCES
	case c.Give:
		return stat.Mode & 0o777, nil
	}
	fd, err := unix.Openat(p.dir, p.name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd)
	} else if !errors.Is(err, unix.ETXTBSY) { // a program that runs is replaced, not changed
		return 0, err
	}
	return stat.Mode & 0o777, nil
}

// receiveFile writes what the host sends until the empty frame at the end.
func (c *fileCall) receiveFile(to *os.File) error {
	for {
		kind, data, err := c.stream.ReadFrame()
		if err != nil {
			return &brokenStream{err}
		}
		if kind != channel.FrameStdin {
			return invalidFile("a frame of type %d does not belong to a file that is written", kind)
		}
		if len(data) == 0 {
			return nil
		}
		if _, err := to.Write(data); err != nil {
			return err
		}
	}
}

// newFile is a file that has not got its name yet.
type newFile struct {
	*filePlace
	file  *os.File
	temp  string // "" once it has its name
	owned bool   // the place is closed with it
}

// keepOpen holds the file open beyond put.
func (f *newFile) keepOpen() (int, error) {
	raw, err := f.file.SyscallConn()
	if err != nil {
		return -1, err
	}
	kept := -1
	var failed error
	err = raw.Control(func(fd uintptr) { kept, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	return kept, errors.Join(err, failed)
}

// createBeside begins a file in the directory of a place.
func createBeside(p *filePlace) (*newFile, error) {
	prefix := temporaryOver
	if _, err := p.statPlace(); errors.Is(err, unix.ENOENT) {
		prefix = temporaryNew
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	temp := prefix + hex.EncodeToString(random)
	fd, err := unix.Openat(p.dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return &newFile{filePlace: p, file: os.NewFile(uintptr(fd), temp), temp: temp}, nil
}

// putInPlace gives the file its mode, its metadata and its name.
func (f *newFile) putInPlace(mode uint32, metadata map[string]string) error {
	raw, err := f.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = setMetadata(int(fd), f.path, metadata); failed == nil {
			failed = unix.Fchmod(int(fd), mode)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if err := f.file.Close(); err != nil { // a disk may say only now that it is full
		return fmt.Errorf("close the file: %w", err)
	}
	if err := unix.Renameat(f.dir, f.temp, f.dir, f.name); err != nil {
		return err
	}
	f.temp = ""
	return nil
}

// discard takes away what has not got its name. With the user's rights.
func (f *newFile) discard() {
	_ = f.file.Close()
	if f.temp != "" {
		_ = unix.Unlinkat(f.dir, f.temp, 0)
	}
	if f.owned {
		f.closePlace()
	}
}
