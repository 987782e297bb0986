package docker

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// opaque is the attribute by which a directory of the writable layer hides the template's.
const opaque = "trusted.overlay.opaque"

// xattrPrefix is where archives keep attributes.
const xattrPrefix = "SCHILY.xattr."

// pack archives a writable layer: what was written, and of what was deleted the marks. The
// sandbox is held meanwhile; should somebody have it go on, nothing that it puts in the
// place of a directory leads out of the layer.
func pack(layer, to string) error {
	root, err := os.OpenRoot(layer)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p := packing{w: tar.NewWriter(out), layer: root, seen: map[uint64]string{}}
	err = fs.WalkDir(root.FS(), ".", p.add)
	return errors.Join(err, p.w.Close(), out.Close())
}

// packing is an archive that is being written.
type packing struct {
	w     *tar.Writer
	layer *os.Root
	seen  map[uint64]string // the first name of each file that has several
}

// add archives one entry. Sockets stay behind: nobody listens on one in a copy.
func (p *packing) add(name string, d fs.DirEntry, err error) error {
	if err != nil || d.Type()&fs.ModeSocket != 0 {
		return err
	}
	info, err := p.layer.Lstat(name)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: the kernel does not say what it is", name)
	}
	h := &tar.Header{
		Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: time.Unix(st.Mtim.Unix()), Format: tar.FormatPAX, PAXRecords: map[string]string{},
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		hides, err := p.hides(name)
		if err != nil {
			return err
		}
		if hides {
			h.PAXRecords[xattrPrefix+opaque] = "y"
		}
	case unix.S_IFLNK:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = p.layer.Readlink(name); err != nil {
			return err
		}
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case unix.S_IFCHR:
		if st.Rdev != 0 {
			return nil // no sandbox can make one
		}
		h.Typeflag = tar.TypeChar // the mark of what was deleted
	case unix.S_IFREG:
		return p.addFile(h, st)
	default:
		return nil
	}
	return p.w.WriteHeader(h)
}

func (p *packing) addFile(h *tar.Header, st *syscall.Stat_t) error {
	if first, ok := p.seen[st.Ino]; ok {
		h.Typeflag, h.Linkname = tar.TypeLink, first
		return p.w.WriteHeader(h)
	}
	if st.Nlink > 1 {
		p.seen[st.Ino] = h.Name
	}
	h.Typeflag, h.Size = tar.TypeReg, st.Size
	// Without waiting: of a pipe in its place nobody may have the other end.
	f, err := p.layer.OpenFile(h.Name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if is, err := f.Stat(); err != nil || !is.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s has become something else", h.Name))
	}
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(p.w, f, st.Size)
	return err
}

// hides tells whether a directory hides the template's.
func (p *packing) hides(name string) (bool, error) {
	dir, err := p.layer.Open(name)
	if err != nil {
		return false, err
	}
	defer dir.Close()
	value := make([]byte, 8)
	n, err := unix.Fgetxattr(int(dir.Fd()), opaque, value)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return string(value[:n]) == "y", nil
}

// unpack fills an empty layer from an archive that pack wrote, which a seal has shown to be
// whole. No name in it leads out of the layer.
func unpack(archive, layer string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	root, err := os.OpenRoot(layer)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	u := unpacking{root: root, layer: layer}
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return u.settle()
		}
		if err == nil {
			err = u.one(h, r)
		}
		if err != nil {
			if errors.Is(err, unix.ENOSPC) {
				return fault.Wrap(fault.ErrConflict, err, "the files of the snapshot %s do not fit the disk", archive)
			}
			return fmt.Errorf("unpack the snapshot %s: %w", archive, err)
		}
	}
}

// unpacking is a layer that is being filled.
type unpacking struct {
	root  *os.Root
	layer string
	dirs  []*tar.Header // whose times are set last
}

func (u *unpacking) one(h *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(h.Name, "/")
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%.200q is no name in a layer", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.directory(name, h); err != nil {
			return err
		}
	case tar.TypeReg:
		f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, content); err != nil {
			return errors.Join(err, f.Close())
		}
		if err := f.Close(); err != nil {
			return err
		}
	case tar.TypeLink:
		return u.root.Link(h.Linkname, name)
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return u.root.Lchown(name, h.Uid, h.Gid)
	case tar.TypeFifo, tar.TypeChar:
		return u.node(name, h)
	default:
		return fmt.Errorf("%.200q is of a kind that layers do not have", h.Name)
	}
	return u.dress(name, h)
}

func (u *unpacking) directory(name string, h *tar.Header) error {
	if name != "." {
		if err := u.root.Mkdir(name, 0o700); err != nil {
			return err
		}
	}
	u.dirs = append(u.dirs, h)
	if h.PAXRecords[xattrPrefix+opaque] != "y" {
		return nil
	}
	dir, err := u.root.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Fsetxattr(int(dir.Fd()), opaque, []byte("y"), 0)
}

// node makes a named pipe, or the mark of what was deleted.
func (u *unpacking) node(name string, h *tar.Header) error {
	dir, err := u.root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	mode := uint32(unix.S_IFIFO)
	if h.Typeflag == tar.TypeChar {
		mode = unix.S_IFCHR
	}
	if err := unix.Mknodat(int(dir.Fd()), filepath.Base(name), mode|0o600, 0); err != nil {
		return err
	}
	return u.dress(name, h)
}

// dress gives an entry its owner, mode and time.
func (u *unpacking) dress(name string, h *tar.Header) error {
	if err := u.root.Lchown(name, h.Uid, h.Gid); err != nil {
		return err
	}
	dir, err := u.root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	// All of its bits, which fs.FileMode spells in its own way.
	if err := unix.Fchmodat(int(dir.Fd()), filepath.Base(name), uint32(h.Mode)&0o7777, 0); err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime)
}

// settle sets the times of directories, which change while they are filled.
func (u *unpacking) settle() error {
	for _, h := range u.dirs {
		if err := u.root.Chtimes(strings.TrimSuffix(h.Name, "/"), h.ModTime, h.ModTime); err != nil {
			return err
		}
	}
	return nil
}
