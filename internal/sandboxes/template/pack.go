package template

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of one artifact's content, all of which was pinned by digest.
const (
	maxToolFiles = 50_000
	maxToolBytes = 1 << 30
)

// packer writes the archive of all tools: regular files and links, root's,
// without times, in the order of the pins. Equal pins give equal bytes.
type packer struct {
	ctx   context.Context //nolint:containedctx // lives for one call, and every step needs it
	out   *tar.Writer
	pin   pin
	found map[string]bool
	files int
	bytes int64
}

// packTools makes the archive of the artifacts in dir, and of what the archive more
// has, if one is named.
func packTools(ctx context.Context, pins []pin, dir, more, target string) error {
	f, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // read by the build's own user in a namespace
	if err != nil {
		return diskFault(err, dir)
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	k := &packer{ctx: ctx, out: tar.NewWriter(buffered)}
	for _, p := range pins {
		if err := k.packArtifact(p, filepath.Join(dir, p.File)); err != nil {
			_ = f.Close()
			return fault.Wrap(fault.ErrUnavailable, err, "%s cannot be unpacked", p.File)
		}
	}
	if more != "" {
		if err := k.addArchive(more); err != nil {
			_ = f.Close()
			return fault.Wrap(fault.ErrUnavailable, err, "%s cannot be unpacked", more)
		}
	}
	if err := errors.Join(k.out.Close(), buffered.Flush(), f.Close()); err != nil {
		return diskFault(err, dir)
	}
	return nil
}

// addArchive takes over what an archive of ours has.
func (k *packer) addArchive(archive string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	r := tar.NewReader(bufio.NewReaderSize(f, 1<<20))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.Join(k.ctx.Err(), k.out.WriteHeader(h))
		}
		if err == nil {
			_, err = io.CopyN(k.out, r, h.Size)
		}
		if err != nil {
			return err
		}
	}
}

// packArtifact takes one artifact into the archive.
func (k *packer) packArtifact(p pin, file string) error {
	k.pin, k.found, k.files, k.bytes = p, map[string]bool{}, 0, 0
	read := k.packTar
	if strings.HasSuffix(file, ".whl") {
		read = k.packZip
	}
	if err := read(file); err != nil {
		return err
	}
	for _, program := range p.programs {
		if !k.found[program] {
			return fmt.Errorf("it has no %s", program)
		}
	}
	for _, link := range sorted(p.links) {
		target, err := filepath.Rel("usr/local/bin", p.links[link])
		if err != nil {
			return err
		}
		err = k.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "usr/local/bin/" + link, Linkname: target, Mode: 0o777, ModTime: time.Unix(0, 0)})
		if err != nil {
			return err
		}
	}
	return nil
}

func sorted(links map[string]string) []string {
	names := make([]string, 0, len(links))
	for name := range links {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (k *packer) packZip(file string) error {
	r, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	for _, f := range r.File {
		if !f.Mode().IsRegular() {
			continue
		}
		in, err := f.Open()
		if err != nil {
			return err
		}
		err = k.packFile(f.Name, int64(f.UncompressedSize64), f.Mode()&0o111 != 0, in)
		_ = in.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *packer) packTar(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := k.packFile(h.Name, h.Size, h.Mode&0o111 != 0, r); err != nil {
			return err
		}
	}
}

// packFile takes one file, if it has a place in the tree.
func (k *packer) packFile(name string, size int64, executable bool, in io.Reader) error {
	if err := k.ctx.Err(); err != nil {
		return err
	}
	to, ok := k.pin.place(name)
	if !ok {
		return nil
	}
	if path.Clean(to) != to || !strings.HasPrefix(to, "usr/local/") || k.found[to] {
		return fmt.Errorf("it has a file of the name %q", name)
	}
	k.found[to] = true
	if k.files++; k.files > maxToolFiles {
		return fmt.Errorf("it has more than %d files", maxToolFiles)
	}
	if k.bytes += size; size < 0 || k.bytes > maxToolBytes {
		return fmt.Errorf("it has more than %d MB", maxToolBytes>>20)
	}
	mode := int64(0o644)
	if executable || slices.Contains(k.pin.programs, to) {
		mode = 0o755
	}
	err := k.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: to, Size: size, Mode: mode, ModTime: time.Unix(0, 0)})
	if err != nil {
		return err
	}
	_, err = io.CopyN(k.out, in, size)
	return err
}

// readMember reads one small text file of a wheel.
func readMember(wheel, name string) ([]byte, error) {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s cannot be read", filepath.Base(wheel))
	}
	defer func() { _ = r.Close() }()
	f, err := r.Open(name)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s has no %s", filepath.Base(wheel), name)
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, 4<<20))
}
