package layer

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
)

// Read puts what Write wrote into an empty root. It follows no link.
func Read(from io.Reader, root *os.Root, owners Owners) error {
	r := &layerReader{root: root, owners: owners, left: newBudget()}
	in := tar.NewReader(from)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return r.dateAll()
		}
		if err == nil {
			err = r.readEntry(h, in)
		}
		if err != nil {
			return err
		}
	}
}

type layerReader struct {
	root   *os.Root
	owners Owners
	left   budget
	dirs   []dated // set when all is in them
}

// dated is a name, and the time that it is to have.
type dated struct {
	name string
	when time.Time
}

func (r *layerReader) readEntry(h *tar.Header, in io.Reader) error {
	h.Name = path.Clean(h.Name)
	if !filepath.IsLocal(h.Name) {
		return fmt.Errorf("%q leads out of the layer", h.Name)
	}
	if err := r.left.spendPath(h.Name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return r.directory(h)
	case tar.TypeReg:
		return r.readFile(h, in)
	case tar.TypeLink:
		if !filepath.IsLocal(h.Linkname) {
			return fmt.Errorf("%q is the same file as %q, which is out of the layer", h.Name, h.Linkname)
		}
		return r.root.Link(h.Linkname, h.Name)
	case tar.TypeSymlink:
		return errors.Join(r.root.Symlink(h.Linkname, h.Name), r.root.Lchown(h.Name, r.ownerID(h), r.groupID(h)), r.setTimes(dated{h.Name, h.ModTime}))
	case tar.TypeFifo:
		return errors.Join(r.makeNode(h, unix.S_IFIFO|uint32(h.Mode&0o7777)), r.root.Lchown(h.Name, r.ownerID(h), r.groupID(h)), r.setTimes(dated{h.Name, h.ModTime}))
	case tar.TypeChar:
		if h.Devmajor != 0 || h.Devminor != 0 {
			return fmt.Errorf("%q is a device", h.Name)
		}
		return r.makeNode(h, unix.S_IFCHR)
	}
	return fmt.Errorf("%q is of no kind that a layer has: %q", h.Name, h.Typeflag)
}

func (r *layerReader) ownerID(h *tar.Header) int {
	return identity.HostID(r.owners.UIDs, uint32(h.Uid))
}

func (r *layerReader) groupID(h *tar.Header) int {
	return identity.HostID(r.owners.GIDs, uint32(h.Gid))
}

func (r *layerReader) directory(h *tar.Header) error {
	if h.Name != "." {
		if err := r.root.Mkdir(h.Name, 0o700); err != nil {
			return err
		}
	}
	f, err := r.root.OpenFile(h.Name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	r.dirs = append(r.dirs, dated{h.Name, h.ModTime})
	return errors.Join(r.setAttributes(f, h), f.Close())
}

func (r *layerReader) readFile(h *tar.Header, in io.Reader) error {
	size, err := strconv.ParseInt(h.PAXRecords[sizeRecord], 10, 64)
	if err != nil || size < 0 {
		return fmt.Errorf("%q has no size", h.Name)
	}
	f, err := r.root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	err = fillFile(f, in, size)
	if err == nil {
		err = r.setAttributes(f, h)
	}
	return errors.Join(err, f.Close(), r.setTimes(dated{h.Name, h.ModTime}))
}

// fillFile writes the pieces of a file.
func fillFile(f *os.File, in io.Reader, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	for {
		var head [2]int64
		err := binary.Read(in, binary.BigEndian, &head)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		offset, length := head[0], head[1]
		if offset < 0 || length < 0 || length > size-offset {
			return fmt.Errorf("%s has a piece of %d bytes at %d, and %d bytes in all", f.Name(), length, offset, size)
		}
		if _, err := io.CopyN(io.NewOffsetWriter(f, offset), in, length); err != nil {
			return err
		}
	}
}

// setAttributes gives a file or directory its owner, its mode (in this order: a change of owners
// takes setuid away) and its attributes.
func (r *layerReader) setAttributes(f *os.File, h *tar.Header) error {
	if err := f.Chown(r.ownerID(h), r.groupID(h)); err != nil {
		return err
	}
	if err := r.attribute(f, h); err != nil {
		return err
	}
	return unix.Fchmod(int(f.Fd()), uint32(h.Mode&0o7777))
}

// makeNode makes a named pipe, or a whiteout.
func (r *layerReader) makeNode(h *tar.Header, mode uint32) error {
	dir, err := r.root.OpenFile(path.Dir(h.Name), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Mknodat(int(dir.Fd()), path.Base(h.Name), mode, 0); err != nil {
		return err
	}
	return unix.Fchmodat(int(dir.Fd()), path.Base(h.Name), mode&0o7777, 0) // the process has a mask
}

// dateAll sets the times of directories, of the innermost first.
func (r *layerReader) dateAll() error {
	for _, d := range slices.Backward(r.dirs) {
		if err := r.setTimes(d); err != nil {
			return err
		}
	}
	return nil
}

func (r *layerReader) setTimes(d dated) error {
	dir, err := r.root.OpenFile(path.Dir(d.name), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	when, err := unix.TimeToTimespec(d.when)
	if err == nil {
		err = unix.UtimesNanoAt(int(dir.Fd()), path.Base(d.name), []unix.Timespec{when, when}, unix.AT_SYMLINK_NOFOLLOW)
	}
	return errors.Join(err, dir.Close())
}
