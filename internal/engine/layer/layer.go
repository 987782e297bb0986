// Package layer writes the writable layer of a container's root to a stream, and reads it
// into another one.
//
// Vocabulary: a *layer* is the upper directory of an overlay: what was written, and a
// *whiteout* for each name that was deleted below; a directory that hides all that lies
// under it is *opaque*. The stream is a tar whose owners are the sandbox's. The content of a
// file in it is a number of *pieces*, because what a sandbox says is a terabyte may be a
// single block: each piece is its offset, its length (8 bytes each, the most significant
// first) and that many bytes. What else belongs to an entry is in records of its own (PAX).
//
// What a layer says comes from a sandbox; who writes the stream is Cofferdam. Sockets and
// the rights that file capabilities give are not kept.
package layer

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/engine/identity"
)

// The records of an entry.
const (
	sizeRecord       = "COFFERDAM.size"       // of a file, with its holes; decimal
	attributesRecord = "COFFERDAM.attributes" // extended attributes by name, as JSON
)

// longestPath bounds what a name inside may have; no program can open a longer one at once.
const longestPath = 4096

// pieceHead is what comes before the bytes of a piece.
const pieceHead = 16

// Owners are the ids of the host that stand for the sandbox's; without any they are the same.
type Owners struct {
	UIDs, GIDs []specs.LinuxIDMapping
}

// Write writes the layer below root, which must not change meanwhile.
func Write(to io.Writer, root *os.Root, owners Owners) error {
	w := &writer{root: root, owners: owners, out: tar.NewWriter(to), named: map[uint64]string{}}
	if err := w.entry("."); err != nil {
		return err
	}
	return w.out.Close()
}

type writer struct {
	root   *os.Root
	owners Owners
	out    *tar.Writer
	named  map[uint64]string // files with several names, by inode
}

// entry writes what has a name, and what is in it.
func (w *writer) entry(name string) error {
	if len(name) >= longestPath {
		return fmt.Errorf("a path has more than %d bytes, which no copy holds; it begins with %.100q", longestPath-1, name)
	}
	info, err := w.root.Lstat(name)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("nothing is known of %q", name)
	}
	h := &tar.Header{
		Format: tar.FormatPAX, Name: name, Mode: int64(st.Mode & 0o7777), ModTime: info.ModTime(),
		Uid: identity.InsideID(w.owners.UIDs, st.Uid), Gid: identity.InsideID(w.owners.GIDs, st.Gid), PAXRecords: map[string]string{},
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return w.directory(h, info)
	case unix.S_IFREG:
		return w.file(h, info, st)
	case unix.S_IFLNK:
		h.Typeflag = tar.TypeSymlink
		to, err := w.root.Readlink(name)
		h.Linkname = to
		return errors.Join(err, w.out.WriteHeader(h))
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case unix.S_IFCHR:
		if st.Rdev != 0 {
			return fmt.Errorf("%q is a device, which a sandbox can't have made", name)
		}
		h.Typeflag = tar.TypeChar // a whiteout
	default:
		return nil // a socket is worth nothing without who listens on it
	}
	return w.out.WriteHeader(h)
}

func (w *writer) directory(h *tar.Header, info fs.FileInfo) error {
	h.Typeflag = tar.TypeDir
	name := h.Name
	f, err := w.open(name, info)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.attributes(f, h); err != nil {
		return err
	}
	if err := w.out.WriteHeader(h); err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, below := range names {
		if err := w.entry(path.Join(name, below)); err != nil { //nolint:gosec // the root lets no name out
			return err
		}
	}
	return nil
}

func (w *writer) file(h *tar.Header, info fs.FileInfo, st *syscall.Stat_t) error {
	if st.Nlink > 1 {
		if first, ok := w.named[st.Ino]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return w.out.WriteHeader(h)
		}
		w.named[st.Ino] = h.Name
	}
	f, err := w.open(h.Name, info)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.attributes(f, h); err != nil {
		return err
	}
	all, err := pieces(f, st.Size)
	if err != nil {
		return err
	}
	h.Typeflag = tar.TypeReg
	h.PAXRecords[sizeRecord] = strconv.FormatInt(st.Size, 10)
	for _, p := range all {
		h.Size += pieceHead + p.length
	}
	if err := w.out.WriteHeader(h); err != nil {
		return err
	}
	for _, p := range all {
		if err := binary.Write(w.out, binary.BigEndian, [2]int64{p.offset, p.length}); err != nil {
			return err
		}
		if _, err := io.Copy(w.out, io.NewSectionReader(f, p.offset, p.length)); err != nil {
			return err
		}
	}
	return nil
}

// open opens what info is of, and nothing that has come into its place.
func (w *writer) open(name string, info fs.FileInfo) (*os.File, error) {
	f, err := w.root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(now, info) {
		return nil, errors.Join(fmt.Errorf("%q was changed while it was being copied", name), err, f.Close())
	}
	return f, nil
}

type piece struct{ offset, length int64 }

// pieces are where a file has content.
func pieces(f *os.File, size int64) (all []piece, err error) {
	for end := int64(0); end < size; {
		begin, err := f.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return all, nil // a hole up to the end
		}
		if err != nil {
			return nil, err
		}
		if end, err = f.Seek(begin, unix.SEEK_HOLE); err != nil {
			return nil, err
		}
		end = min(end, size)
		all = append(all, piece{offset: begin, length: end - begin})
	}
	return all, nil
}
