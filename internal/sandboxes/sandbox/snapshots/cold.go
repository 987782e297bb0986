package snapshots

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/image"
)

// coldWindow is how far back compression looks. The daemon's memory grows by a few
// times that while it compresses; the library's own choice is 8 MiB.
const coldWindow = 1 << 20

const (
	coldExt   = ".zst"
	tendEvery = time.Minute
	chunk     = 1 << 20 // bytes
	block     = 64 << 10
)

// Tend compresses snapshots that lie unused, one at a time and at the lowest
// priority, until ctx ends.
func (s *Store) Tend(ctx context.Context) {
	if s.coldAfter <= 0 {
		return
	}
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for {
		for s.coolOne(ctx) {
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// coolOne compresses the snapshot that lies unused longest, on a thread of its own;
// false: there was none to compress, or it failed.
func (s *Store) coolOne(ctx context.Context) bool {
	done := make(chan bool, 1)
	safego.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its priority with it
		lowestPriority()
		did := false
		defer func() { done <- did }()
		did = s.CompressOne(ctx)
	})
	return <-done
}

// lowestPriority is of the calling thread; what the kernel refuses is passed over.
func lowestPriority() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
	const whoThread, idle = 1, 3 << 13
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, whoThread, 0, idle)
}

// CompressOne compresses the snapshot that lies unused longest; false: none is
// due, or it failed, which the log tells.
func (s *Store) CompressOne(ctx context.Context) bool {
	k := s.takeDue()
	if k == nil || ctx.Err() != nil {
		return false
	}
	id, began := k.manifest.ID, time.Now()
	err := s.compress(ctx, k)
	after := diskUse(filepath.Join(s.dir, id)) // nobody waits for that
	s.mu.Lock()
	k.changing = false
	if err != nil {
		k.used = s.now() // it is not tried again at once
	}
	before := k.disk
	k.disk = after
	s.mu.Unlock()
	switch {
	case errors.Is(err, errWanted), ctx.Err() != nil:
		return false
	case err != nil:
		s.log.Error("a snapshot can't be compressed", "snapshot", id, "err", err)
		return false
	}
	s.log.Info("a snapshot was compressed", "snapshot", id, "before_mib", before>>20, "after_mib", after>>20, "took", time.Since(began))
	return true
}

// takeDue marks the snapshot that is to be compressed next; nil: there is none.
func (s *Store) takeDue() *keptSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest *keptSnapshot
	for _, k := range s.known {
		if k.cold || k.changing || k.readers > 0 || s.now().Sub(k.used) < s.coldAfter {
			continue
		}
		if oldest == nil || k.used.Before(oldest.used) {
			oldest = k
		}
	}
	if oldest != nil {
		oldest.changing = true
	}
	return oldest
}

// errWanted ends a compression because somebody wants the snapshot.
var errWanted = errors.New("the snapshot is wanted")

// compress puts the cold form in the place of the plain one. A crash at any point
// leaves one of the two whole: see tidyDir.
func (s *Store) compress(ctx context.Context, k *keptSnapshot) error {
	k.form.Lock()
	defer k.form.Unlock()
	dir := filepath.Join(s.dir, k.manifest.ID)
	fresh, plain := filepath.Join(dir, "."+coldName), filepath.Join(dir, imageName)
	wanted := func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if k.readers > 0 {
			return errWanted
		}
		return ctx.Err()
	}
	err := convert(plain, fresh, func(name string) string { return name + coldExt }, func(to, from *os.File) error {
		return packFile(to, from, wanted)
	})
	if err == nil {
		err = wanted()
	}
	if err == nil {
		err = os.Rename(fresh, filepath.Join(dir, coldName))
	}
	if err == nil {
		err = atomicfile.SyncDir(dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh), os.RemoveAll(filepath.Join(dir, coldName)))
	}
	old := filepath.Join(dir, "."+imageName)
	if err := os.Rename(plain, old); err != nil {
		return err
	}
	s.mu.Lock()
	k.cold = true
	s.mu.Unlock()
	return errors.Join(atomicfile.SyncDir(dir), os.RemoveAll(old))
}

// warmSnapshot gives a snapshot its plain form back, if it is cold, in a turn of whoever wants
// it.
func (s *Store) warmSnapshot(ctx context.Context, owner string, k *keptSnapshot) error {
	k.form.Lock()
	defer k.form.Unlock()
	s.mu.Lock()
	cold := k.cold
	s.mu.Unlock()
	if !cold {
		return nil
	}
	_, leave, err := s.warming.Take(fairqueue.For(ctx, owner))
	if errors.Is(err, fairqueue.ErrCrowded) {
		return fault.Exhausted(time.Minute, "%d compressed snapshots of the same owner wait already to be decompressed", warmLine)
	}
	if err != nil {
		return err
	}
	defer leave()
	if err := s.checkDisk(k.manifest.Bytes); err != nil {
		return err
	}
	s.mu.Lock()
	err = s.checkRoom(k.manifest.Owner, k.manifest.Bytes, false)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.decompress(ctx, k)
}

// decompress needs k.form.
func (s *Store) decompress(ctx context.Context, k *keptSnapshot) error {
	id, began := k.manifest.ID, time.Now()
	dir := filepath.Join(s.dir, id)
	fresh := filepath.Join(dir, "."+imageName)
	s.log.Info("a compressed snapshot is being decompressed", "snapshot", id, "mib", k.manifest.Bytes>>20)
	err := convert(filepath.Join(dir, coldName), fresh, func(name string) string { return strings.TrimSuffix(name, coldExt) }, func(to, from *os.File) error {
		return unpack(ctx, to, from)
	})
	if err == nil {
		err = image.Intact(fresh) // before the compressed form, which may be whole, is gone
	}
	if err == nil {
		err = os.Rename(fresh, filepath.Join(dir, imageName))
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(fresh))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.Wrap(fault.ErrConflict, err, "the compressed snapshot %s can't be read", id)
	}
	if err := errors.Join(atomicfile.SyncDir(dir), os.RemoveAll(filepath.Join(dir, coldName))); err != nil {
		s.log.Error("the compressed form of a snapshot is left", "snapshot", id, "err", err)
	}
	disk := diskUse(dir)
	s.mu.Lock()
	k.cold, k.disk = false, disk
	s.mu.Unlock()
	s.log.Info("a compressed snapshot was decompressed", "snapshot", id, "took", time.Since(began))
	return nil
}

// convert writes each file of a flat directory anew into another, which it makes.
func convert(from, to string, rename func(string) string, each func(to, from *os.File) error) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if err := convertFile(filepath.Join(from, e.Name()), filepath.Join(to, rename(e.Name())), each); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(to)
}

func convertFile(from, to string, each func(to, from *os.File) error) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(each(out, in), out.Sync(), out.Close())
}

// packFile compresses one file on this thread. Holes become next to nothing.
func packFile(to, from *os.File, wanted func() error) error {
	enc, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(coldWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	buf := make([]byte, chunk)
	for {
		if err := wanted(); err != nil {
			return errors.Join(err, enc.Close())
		}
		n, err := from.Read(buf)
		if _, werr := enc.Write(buf[:n]); werr != nil {
			return errors.Join(werr, enc.Close())
		}
		if errors.Is(err, io.EOF) {
			return enc.Close()
		}
		if err != nil {
			return errors.Join(err, enc.Close())
		}
	}
}

// unpack writes a file as it was, with holes where there are zeros.
func unpack(ctx context.Context, to, from *os.File) error {
	dec, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return err
	}
	defer dec.Close()
	buf := make([]byte, block)
	size := int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(dec, buf)
		if n > 0 && !isZero(buf[:n]) {
			if _, werr := to.WriteAt(buf[:n], size); werr != nil {
				return werr
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && n > 0 && isEnded(dec) {
			return to.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}

// isEnded tells whether the stream is over, and not broken off.
func isEnded(r io.Reader) bool {
	n, err := r.Read(make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
