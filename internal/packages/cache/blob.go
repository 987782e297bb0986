package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// ErrQuarantined means that the blob on the disk was not what its name says. It
// has been moved aside, and the caller may fetch it anew.
var ErrQuarantined = errors.New("a cached artifact was changed on the disk and set aside")

// Blob is an open, verified artifact: its bytes under their digest. Close it; until then it isn't evicted.
type Blob struct {
	store *Store
	hex   string
	file  *os.File
	size  int64
}

// ReadAt implements io.ReaderAt.
func (b *Blob) ReadAt(p []byte, off int64) (int, error) { return b.file.ReadAt(p, off) }

// Size is the number of bytes.
func (b *Blob) Size() int64 { return b.size }

// Digest is "sha256:<hex>".
func (b *Blob) Digest() string { return "sha256:" + b.hex }

// Reader reads the blob from its beginning, independently of other readers.
func (b *Blob) Reader() *io.SectionReader { return io.NewSectionReader(b.file, 0, b.size) }

// Close lets the blob be evicted.
func (b *Blob) Close() error {
	b.store.mu.Lock()
	if e := b.store.blobs[b.hex]; e != nil {
		e.open--
	}
	b.store.mu.Unlock()
	return b.file.Close()
}

// stamp is what a verified blob looked like to the file system (inode, size, times), so that an
// unchanged blob isn't read again. The change
// time can't be set by a program, so an edit shows even if the rest is put back.
type stamp struct {
	dev, ino uint64
	size     int64
	mtime    syscall.Timespec
	ctime    syscall.Timespec
}

// Get opens a blob. fault.ErrNotFound: it isn't there; ErrQuarantined: it was
// there and was not what it should be. Its bytes are hashed at the first use
// in this process and whenever its stamp changed.
func (s *Store) Get(digest string) (*Blob, error) {
	h, err := parseDigest(digest)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(s.blobPath(h), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.forgetBlob(h)
		return nil, fault.New(fault.ErrNotFound, "the artifact is not in the cache")
	case err != nil: // a symbolic link, or not readable
		return nil, s.quarantine(h)
	}
	blob, err := s.verified(h, f)
	if err != nil {
		_ = f.Close() // read only: nothing to lose
		return nil, err
	}
	return blob, nil
}

func (s *Store) verified(h string, f *os.File) (*Blob, error) {
	now, ok := stampOf(f)
	if !ok {
		return nil, s.quarantine(h)
	}
	if s.acquire(h, now) {
		return &Blob{store: s, hex: h, file: f, size: now.size}, nil
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, f); err != nil || n != now.size || hex.EncodeToString(sum.Sum(nil)) != h {
		return nil, s.quarantine(h)
	}
	if after, ok := stampOf(f); !ok || after != now { // changed while it was read
		return nil, s.quarantine(h)
	}
	s.rememberBlob(h, now)
	return &Blob{store: s, hex: h, file: f, size: now.size}, nil
}

// stampOf looks at an open file; false if no blob of ours can look like that.
func stampOf(f *os.File) (stamp, bool) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 || info.Mode().Perm()&0o022 != 0 {
		return stamp{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
		return stamp{}, false
	}
	return stamp{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}, true
}

// acquire counts a handle if the blob was verified with this very stamp.
func (s *Store) acquire(h string, now stamp) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.blobs[h]
	if e == nil || e.stamp != now {
		return false
	}
	e.open++
	s.order.MoveToBack(e.at)
	return true
}

// rememberBlob takes a verified blob in and counts a handle on it.
func (s *Store) rememberBlob(h string, now stamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.blobs[h]
	if e == nil {
		e = s.addBlob(h)
	}
	s.total += now.size - e.size
	e.size, e.stamp = now.size, now
	s.order.MoveToBack(e.at)
	e.open++
}

func (s *Store) forgetBlob(h string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.blobs[h]; e != nil && e.open == 0 {
		s.dropBlob(h, e)
	}
}

// quarantine moves what is under a blob's name aside. It always returns an
// error: ErrQuarantined, or why the thing is still there.
func (s *Store) quarantine(h string) error {
	aside := filepath.Join(s.dir, dirQuarantine, fmt.Sprintf("%s-%d", h, time.Now().UnixNano()))
	err := os.Rename(s.blobPath(h), aside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.ErrUnavailable, err, "a cached artifact is not what it should be and can't be moved aside")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.blobs[h]; e != nil {
		s.total -= e.size
		e.size, e.stamp = 0, stamp{}
		if e.open == 0 {
			s.dropBlob(h, e)
		}
	}
	return ErrQuarantined
}
