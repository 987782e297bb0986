package debian

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory/all"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// Bounds of what is read of one package's contents.
const (
	maxContents     = 8 << 30 // unpacked
	maxTelling      = 4 << 20 // of one file that tells of a package
	maxDescriptions = 256 << 20
	maxBrought      = 5_000 // releases
)

// brings finds the releases of the ecosystems that lie in a verified package, as an
// inventory of a sandbox that has it will: what tells of them is laid out in a folder.
func (s *Set) brings(ctx context.Context, p Package) (found []pkgref.Ref, err error) {
	f, err := s.Open(p)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, executable.System("dpkg-deb", s.archive.cfg.Writable), "--fsys-tarfile", "/dev/stdin")
	cmd.Env = executable.SystemEnvironment()
	cmd.Stdin, cmd.WaitDelay = f, 5*time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "this host has no dpkg-deb, with which packages are looked into")
	}
	found, err = readContents(ctx, s.work, io.LimitReader(out, maxContents))
	if err != nil {
		cancel()
	}
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s can't be looked into", p.File)
	}
	return found, nil
}

// readContents reads a package's files; below work it has a folder for a moment.
func readContents(ctx context.Context, work string, r io.Reader) (found []pkgref.Ref, err error) {
	dir, err := os.MkdirTemp(work, "inside-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	described, err := layOut(dir, r)
	if err != nil || !described {
		return nil, err
	}
	result := inventory.Take(ctx, inventory.Request{Root: dir, Places: []string{"/"}, Layouts: all.Layouts(), Memory: inventory.NewMemory(all.Layouts())})
	if len(result.Bounds) > 0 {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("it can't be listed whole: %s", result.Bounds[0]))
	}
	if len(result.Packages) > maxBrought {
		return nil, fmt.Errorf("it has %d packages of other ecosystems inside; at most %d", len(result.Packages), maxBrought)
	}
	for _, p := range result.Packages {
		if ref, ok := releaseOf(p); ok {
			found = append(found, ref)
		}
	}
	return found, nil
}

// layOut writes what tells of packages below dir, and whether there is any.
func layOut(dir string, r io.Reader) (found bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	files, left := tar.NewReader(r), int64(maxDescriptions)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r) // what follows the end, so that its writer ends well
			return found, err
		}
		if err != nil {
			return found, err
		}
		if h.Typeflag != tar.TypeReg || !telling(h) {
			continue
		}
		if left -= h.Size; h.Size > maxTelling || left < 0 {
			return found, fmt.Errorf("%q is too large to be read", h.Name)
		}
		if err := writeBelow(root, strings.TrimPrefix(path.Clean("/"+h.Name), "/"), files); err != nil {
			return found, err
		}
		found = true
	}
}

// telling tells whether a layout reads such a file, or may read it because of where it lies.
func telling(h *tar.Header) bool {
	if strings.HasSuffix(path.Dir(path.Clean(h.Name)), "-info") {
		return true
	}
	for _, layout := range all.Layouts() {
		if layout.Tells(archiveFile{h.FileInfo()}) {
			return true
		}
	}
	return false
}

func writeBelow(root *os.Root, name string, from io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// archiveFile is a file of an archive as one of a directory.
type archiveFile struct{ os.FileInfo }

// Type implements fs.DirEntry.
func (e archiveFile) Type() os.FileMode { return e.Mode().Type() }

// Info implements fs.DirEntry.
func (e archiveFile) Info() (os.FileInfo, error) { return e.FileInfo, nil }

func releaseOf(p channel.InstalledPackage) (pkgref.Ref, bool) {
	if p.Source {
		return pkgref.Ref{}, false
	}
	ref, err := pkgref.New(pkgref.Ecosystem(p.Ecosystem), p.Name, p.Version)
	return ref, err == nil && ref.Version != "" && !strings.ContainsAny(ref.Version, ", ")
}
