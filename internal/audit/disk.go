package audit

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// disk is where segments live. The tests put one under the log that fails at a
// chosen call.
type disk interface {
	// openSegment opens or creates a segment for writing.
	openSegment(path string) (segmentFile, error)
	// syncDir makes the directory's entries durable.
	syncDir(dir string) error
}

// segmentFile is a segment open for writing. WriteAt may write less than it was
// given, with or without an error.
type segmentFile interface {
	WriteAt(p []byte, off int64) (int, error)
	Datasync() error
	Truncate(size int64) error
	Close() error
}

type osDisk struct{}

func (osDisk) openSegment(path string) (segmentFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600) // #nosec G304 -- the path is made by the log from its own directory
	if err != nil {
		return nil, err
	}
	return osSegment{f}, nil
}

func (osDisk) syncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

type osSegment struct{ *os.File }

func (s osSegment) Datasync() error { return unix.Fdatasync(int(s.Fd())) }

// uninterrupted repeats a call that a signal interrupted.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeAll writes p at off, however many calls that takes. An EINTR is no
// failure; a call that writes nothing and says nothing is.
func writeAll(f segmentFile, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := f.WriteAt(p, off)
		p, off = p[n:], off+int64(n)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return unix.EIO
		}
	}
	return nil
}
