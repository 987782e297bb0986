package cache

import (
	"crypto/sha1" //nolint:gosec // for indexes that give nothing better: such a digest counts as weak
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// spaceEvery is how many bytes are written between two looks at the free space.
const spaceEvery = 32 << 20

// Writer takes an artifact's bytes and sums them. Nobody but its owner, who may
// read them back to verify them, sees them before Commit.
type Writer struct {
	store *Store
	file  *os.File
	sums  summer
	size  int64
	most  int64
	check int64 // size at which the free space is looked at next
}

// Create starts an artifact of size bytes, or if that is 0 of at most most
// bytes; if that is 0 too, of at most the store's limit. Call Commit or Abort.
func (s *Store) Create(size, most int64) (*Writer, error) {
	if most == 0 || most > s.limits.MaxArtifact {
		most = s.limits.MaxArtifact
	}
	if size > most {
		return nil, fault.New(fault.ErrForbidden, "the file has %d bytes; at most %d are taken", size, most)
	}
	if size > 0 {
		most = size
	}
	if err := s.checkSpace(size); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, dirTemp), "artifact-")
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return &Writer{store: s, file: f, sums: newSummer(), most: most, check: spaceEvery}, nil
}

// AlsoSHA1 makes Sums give the sha1 too. Call it before the first Write.
func (w *Writer) AlsoSHA1() { w.sums.sha1 = sha1.New() } //nolint:gosec // as at the import

// checkSpace refuses when writing size more bytes would eat into the reserve.
func (s *Store) checkSpace(size int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(s.dir, &st); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache's file system can't be looked at")
	}
	free := int64(min(st.Bavail, 1<<40)) * st.Bsize
	if free-size < s.limits.Reserve {
		return fault.New(fault.ErrUnavailable, "the cache's file system is nearly full; free some space or set a smaller reserve")
	}
	return nil
}

// Write implements io.Writer. It refuses more bytes than the artifact may have.
func (w *Writer) Write(p []byte) (int, error) {
	if w.size+int64(len(p)) > w.most {
		return 0, fault.Invalid("the file has more bytes than the %d that it should have", w.most)
	}
	if w.size >= w.check {
		w.check = w.size + spaceEvery
		if err := w.store.checkSpace(0); err != nil {
			return 0, err
		}
	}
	n, err := w.file.Write(p)
	w.size += int64(n)
	w.sums.writeBytes(p[:n])
	if err != nil {
		return n, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return n, nil
}

// Size is the number of bytes so far.
func (w *Writer) Size() int64 { return w.size }

// ReadAt implements io.ReaderAt over the bytes so far.
func (w *Writer) ReadAt(p []byte, off int64) (int, error) { return w.file.ReadAt(p, off) }

// Sums are the digests of the bytes so far.
func (w *Writer) Sums() Sums { return w.sums.sumsNow() }

// Reset begins again.
func (w *Writer) Reset() error {
	w.sums.resetHashes()
	w.size, w.check = 0, spaceEvery
	if err := w.file.Truncate(0); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	if _, err := w.file.Seek(0, io.SeekStart); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return nil
}

// Commit puts the bytes, which the caller has verified, in their place under
// their sha256: fsync, rename, fsync of the directory. After an error nothing
// is kept.
func (w *Writer) Commit() error {
	var err error
	if w.size == 0 {
		err = fault.Invalid("the file is empty")
	}
	if err == nil {
		h, _ := parseDigest(w.Sums().SHA256) // made by a sum
		err = w.publishBlob(h)
	}
	if err != nil {
		w.Abort()
		return err
	}
	w.store.evictBlobs(w.store.limits.MaxBytes)
	return nil
}

func (w *Writer) publishBlob(h string) error {
	path := w.store.blobPath(h)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	if err := w.file.Sync(); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	if err := os.Rename(w.file.Name(), path); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return err
	}
	if now, ok := stampOf(w.file); ok {
		w.store.rememberBlob(h, now)
		w.store.releaseBlob(h)
	}
	if err := w.file.Close(); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return nil
}

// Abort throws the bytes away. It may be called after Commit failed.
func (w *Writer) Abort() {
	// Nothing can be done about either error: Open clears what is left.
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}

func syncDir(dir string) error {
	if err := atomicfile.SyncDir(dir); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return nil
}
