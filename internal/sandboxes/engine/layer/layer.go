// Package layer writes the writable layer of a container's root to a stream, and reads it
// into another one.
//
// The layer is the upper directory of an overlay. It has all that was written, and a whiteout for
// each name that was deleted below; a directory that hides all that lies under it is opaque. The
// stream is a tar whose owners are the sandbox's. The content of a file in it is a number of
// pieces, because what a sandbox says is a terabyte may be a single block: each piece is its
// offset, its length (8 bytes each, the most significant first) and that many bytes. The rest of an
// entry is in records of its own (PAX).
//
// A layer's content comes from a sandbox; Cofferdam writes the stream. Sockets and
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
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
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

// Nothing but its disk limits a sandbox's files, and there a name costs little and a second
// name of a file next to nothing. A layer with more than this is refused.
const (
	mostEntries = 2_000_000
	mostNames   = 256 << 20 // bytes of all paths
	readAtOnce  = 1024      // names of a directory
)

// budget is what is left of these.
type budget struct{ entries, names int }

func newBudget() budget { return budget{entries: mostEntries, names: mostNames} }

// spendPath takes a path from the budget.
func (b *budget) spendPath(name string) error {
	b.entries--
	b.names -= len(name)
	if b.entries < 0 || b.names < 0 {
		return fmt.Errorf("there are more than %d files, or paths of more than %d MB, of which no copy is made; remove some of them", mostEntries, mostNames>>20)
	}
	return nil
}

// Write writes the layer below root, which must not change meanwhile. Its memory does not grow
// with what is in a directory or in a file: names come in parts, and only those of files with
// several names are kept.
func Write(to io.Writer, root *os.Root, owners Owners) error {
	top, err := root.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	w := newWriter(to, owners)
	if err := w.writeEntry(top, ".", "."); err != nil {
		return err
	}
	return w.out.Close()
}

type writer struct {
	owners Owners
	out    *tar.Writer
	left   budget
	named  map[uint64]string // files with several names, by inode
	// list and value are where attributes are read to.
	list, value [largest]byte
}

func newWriter(to io.Writer, owners Owners) *writer {
	return &writer{owners: owners, out: tar.NewWriter(to), left: newBudget(), named: map[uint64]string{}}
}

// writeEntry writes what has a name in a directory, and what is in it; path is its name in the layer.
func (w *writer) writeEntry(dir *os.File, base, name string) error {
	if len(name) >= longestPath {
		return fmt.Errorf("a path has more than %d bytes, which no copy holds; it begins with %.100q", longestPath-1, name)
	}
	if err := w.left.spendPath(name); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	h := &tar.Header{
		Format: tar.FormatPAX, Name: name, Mode: int64(st.Mode & 0o7777), ModTime: time.Unix(st.Mtim.Unix()),
		Uid: identity.InsideID(w.owners.UIDs, st.Uid), Gid: identity.InsideID(w.owners.GIDs, st.Gid), PAXRecords: map[string]string{},
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return w.directory(dir, base, h, &st)
	case unix.S_IFREG:
		return w.writeFile(dir, base, h, &st)
	case unix.S_IFLNK:
		to := make([]byte, longestPath)
		n, err := unix.Readlinkat(int(dir.Fd()), base, to)
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(to[:max(n, 0)])
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

func (w *writer) directory(dir *os.File, base string, h *tar.Header, st *unix.Stat_t) error {
	h.Typeflag = tar.TypeDir
	f, err := openSame(dir, base, h.Name, st)
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
	name := h.Name
	for {
		names, err := f.Readdirnames(readAtOnce)
		slices.Sort(names)
		for _, below := range names {
			if err := w.writeEntry(f, below, path.Join(name, below)); err != nil { //nolint:gosec // a name in the layer; below is a name in f
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *writer) writeFile(dir *os.File, base string, h *tar.Header, st *unix.Stat_t) error {
	if st.Nlink > 1 {
		if first, ok := w.named[st.Ino]; ok {
			h.Typeflag, h.Linkname = tar.TypeLink, first
			return w.out.WriteHeader(h)
		}
		w.named[st.Ino] = h.Name
	}
	f, err := openSame(dir, base, h.Name, st)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.attributes(f, h); err != nil {
		return err
	}
	h.Typeflag = tar.TypeReg
	h.PAXRecords[sizeRecord] = strconv.FormatInt(st.Size, 10)
	if err := eachPiece(f, st.Size, func(p piece) error {
		h.Size += pieceHead + p.length
		return nil
	}); err != nil {
		return err
	}
	if err := w.out.WriteHeader(h); err != nil {
		return err
	}
	return eachPiece(f, st.Size, func(p piece) error { // more than before is more than the header says: an error
		if err := binary.Write(w.out, binary.BigEndian, [2]int64{p.offset, p.length}); err != nil {
			return err
		}
		_, err := io.Copy(w.out, io.NewSectionReader(f, p.offset, p.length))
		return err
	})
}

// openSame opens what st is of, and nothing that has come into its place.
func openSame(dir *os.File, base, name string, st *unix.Stat_t) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil || now.Dev != st.Dev || now.Ino != st.Ino || now.Mode&unix.S_IFMT != st.Mode&unix.S_IFMT {
		return nil, errors.Join(fmt.Errorf("%q was changed while it was being copied", name), err, f.Close())
	}
	return f, nil
}

type piece struct{ offset, length int64 }

// eachPiece tells where a file has content, up to a size.
func eachPiece(f *os.File, size int64, tell func(piece) error) error {
	for end := int64(0); end < size; {
		begin, err := f.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && begin >= size {
			return nil // a hole up to the end
		}
		if err != nil {
			return err
		}
		if end, err = f.Seek(begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		end = min(end, size)
		if err := tell(piece{offset: begin, length: end - begin}); err != nil {
			return err
		}
	}
	return nil
}
