package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
)

// mostHeld is how large a file may be that is read whole before its length is written, so
// that it may change meanwhile, in bytes.
const mostHeld = 1 << 20

// bounds are of a state directory.
func bounds() treewalk.Bounds {
	b := treewalk.Usual()
	b.Entries *= 10
	b.Names *= 10 // those of a part are held, not all
	return b
}

// copyFiles copies what is below a directory, file by file, but for what is left out, what the archive
// has already and what is copied as a set. A file that goes meanwhile is left out.
func (b *writer) copyFiles(ctx context.Context, at string) error {
	err := treewalk.Walk(ctx, b.state, at, bounds(), func(name string, d fs.DirEntry, err error) error {
		switch {
		case isGone(err):
			return nil
		case err != nil:
			return b.unread(name, err)
		case name == ".":
			return nil
		case b.isPassed(name):
			return skipEntry(d)
		case slices.Contains(b.out, name):
			return errors.Join(b.copyEntry(ctx, name, d), skipEntry(d))
		}
		return b.copyEntry(ctx, name, d)
	})
	return b.walked(at, err)
}

func skipEntry(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// isGone tells whether an error says that there is nothing any more, or nothing of that kind.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

func unread(name string, err error) error {
	return fault.Wrap(fault.ErrUnavailable, err, "%s in the state directory can't be read", name)
}

// unread is nil of what is in a home, which is not whole then.
func (b *writer) unread(name string, err error) error {
	if b.home.noteLack("has files that can't be read, which are left out") {
		return nil
	}
	return unread(name, err)
}

func (b *writer) walked(at string, err error) error {
	if bound, ok := errors.AsType[*treewalk.BoundError](err); ok {
		if b.home.noteLack(bound.Has + ", so that some are left out") {
			return nil
		}
		return fault.Wrap(fault.ErrExhausted, bound, "%s in the state directory %s, so that it can't be backed up", at, bound.Has)
	}
	return err
}

// copyEntry copies one entry as it lies there, if the archive lacks it.
func (b *writer) copyEntry(ctx context.Context, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if isGone(err) {
		return skipEntry(d)
	}
	if b.seen[name] {
		if b.home != nil { // told twice: it may be a directory now, and a link in the archive
			return skipEntry(d)
		}
		return nil
	}
	if err != nil {
		return b.unread(name, err)
	}
	if d.IsDir() != info.IsDir() {
		return skipEntry(d) // another thing has its name since: an entry must not be below a link
	}
	switch {
	case info.IsDir():
		return b.header(name, info, "", 0)
	case info.Mode()&fs.ModeSymlink != 0:
		return b.pointing(name, info)
	case !info.Mode().IsRegular():
		return nil // a socket, or what an agent made
	}
	file, err := b.openInside(name)
	if _, changed := errors.AsType[*hostpath.TypeError](err); isGone(err) || changed {
		return nil
	}
	if err != nil {
		return b.unread(name, err)
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	return b.copyFile(ctx, name, file, -1)
}

// openInside opens a file in the state directory, and follows no link to it.
func (b *writer) openInside(name string) (*os.File, error) {
	found, err := b.state.Below(name, hostpath.Identity{})
	if err != nil {
		return nil, err
	}
	defer found.Close()
	return found.Reader()
}

// copyLink copies a link, if it still is one.
func (b *writer) copyLink(name string, info fs.FileInfo) error {
	to, err := b.target(name)
	if err != nil || to == "" {
		return err
	}
	return b.header(name, info, to, 0)
}

// pointing copies a link as that, and tells if it leads out of the state directory, to what the archive lacks.
func (b *writer) pointing(name string, info fs.FileInfo) error {
	to, err := b.target(name)
	if err != nil || to == "" {
		return err
	}
	if b.home == nil && (path.IsAbs(to) || !filepath.IsLocal(path.Join(path.Dir(name), to))) {
		b.out = append(b.out, name)
	}
	return b.header(name, info, to, 0)
}

// target is what a link says; "": it is none any more.
func (b *writer) target(name string) (string, error) {
	dir, err := b.state.Below(path.Dir(name), hostpath.Identity{})
	if isGone(err) {
		return "", nil
	}
	if err != nil {
		return "", b.unread(name, err)
	}
	defer dir.Close()
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir.Fd(), path.Base(name), to)
	if errors.Is(err, unix.EINVAL) || isGone(err) {
		return "", nil
	}
	if err != nil {
		return "", b.unread(name, err)
	}
	return string(to[:n]), nil
}

// copyFile copies so much of a file, or with a negative size all of it.
func (b *writer) copyFile(ctx context.Context, name string, file *os.File, size int64) error {
	info, err := file.Stat()
	if err != nil {
		return b.unread(name, err)
	}
	if first := b.home.linkedName(info); first != "" {
		return b.header(name, info, first, 0)
	}
	if b.home.chargeHoles(file, info) {
		return nil
	}
	if size < 0 {
		size = info.Size()
	}
	if b.home.chargeBytes(size) {
		return nil
	}
	from := io.Reader(io.NewSectionReader(file, 0, size))
	if size <= mostHeld {
		whole, err := io.ReadAll(from)
		if err != nil {
			return b.unread(name, err)
		}
		size, from = int64(len(whole)), bytes.NewReader(whole)
	}
	if err := b.header(name, info, "", size); err != nil {
		return err
	}
	b.report.Files++
	b.home.noteName(name, info)
	return b.content(ctx, name, from, size)
}

// content copies a file's bytes, of which there must be so many.
func (b *writer) content(ctx context.Context, name string, from io.Reader, size int64) error {
	chunk := make([]byte, 256<<10)
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(from, chunk[:min(left, int64(len(chunk)))])
		if err != nil && b.home.noteLack("has files that became shorter, or could be read no more, while they were copied: zeros stand for the rest") {
			clear(chunk[n:])
			from, n, err = zeros{}, int(min(left, int64(len(chunk)))), nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fault.New(fault.ErrConflict, "%s in the state directory became shorter while it was copied; begin the backup again", name)
		}
		if err != nil {
			return unread(name, err)
		}
		if _, err := b.tar.Write(chunk[:n]); err != nil {
			return err
		}
		left -= int64(n)
		b.read += int64(n)
		if b.options.Progress != nil {
			b.options.Progress(b.read)
		}
	}
	return nil
}

// zeros are as many as are read.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// copyParents copies the directories that a path lies in.
func (b *writer) copyParents(name string) error {
	for i, c := range name {
		dir := name[:i]
		if c != '/' || b.seen[dir] {
			continue
		}
		found, err := b.state.Below(dir, hostpath.Identity{})
		if err != nil {
			return unread(dir, err)
		}
		info, err := os.Stat(found.Proc())
		found.Close()
		if err != nil {
			return unread(dir, err)
		}
		if err := b.header(dir, info, "", 0); err != nil {
			return err
		}
	}
	return nil
}

// header begins an entry. Owners are numbers: names are of this machine.
func (b *writer) header(name string, info fs.FileInfo, to string, size int64) error {
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Size: size, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		h.Uid, h.Gid = int(st.Uid), int(st.Gid)
		h.Mode = int64(st.Mode & 0o7777)
	}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, strings.TrimSuffix(name, "/")+"/"
	case info.Mode().IsRegular() && to != "":
		h.Typeflag, h.Linkname = tar.TypeLink, to
	case to != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, to
	}
	b.seen[name] = true
	return b.tar.WriteHeader(h)
}
