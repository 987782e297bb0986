package audit

import (
	"errors"
	"sync"

	"golang.org/x/sys/unix"
)

// failingDisk is the real disk, except that from its call number At on it does
// what Fail says, Times times. Calls are opens, writes, syncs and truncations,
// counted together.
type failingDisk struct {
	osDisk

	mu    sync.Mutex
	calls int
	at    int
	times int
	fail  failure
	only  string // "" or the one kind of call that fails
}

// failure is what a failing call does: an error, or half the work, or both.
type failure struct {
	err  error
	half bool
}

func (d *failingDisk) strike(kind string) (failure, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.only != "" && d.only != kind {
		return failure{}, false
	}
	d.calls++
	return d.fail, d.at > 0 && d.calls >= d.at && d.calls < d.at+d.times
}

func (d *failingDisk) arm(only string, at, times int, fail failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.only, d.at, d.times, d.fail, d.calls = only, at, times, fail, 0
}

func (d *failingDisk) openSegment(path string) (segmentFile, error) {
	if f, ok := d.strike("open"); ok && f.err != nil && !errors.Is(f.err, unix.EINTR) {
		return nil, f.err
	}
	file, err := d.osDisk.openSegment(path)
	return failingSegment{file, d}, err
}

func (d *failingDisk) syncDir(dir string) error {
	if f, ok := d.strike("syncdir"); ok && f.err != nil {
		return f.err
	}
	return d.osDisk.syncDir(dir)
}

type failingSegment struct {
	segmentFile
	disk *failingDisk
}

func (s failingSegment) WriteAt(p []byte, off int64) (int, error) {
	f, ok := s.disk.strike("write")
	if !ok {
		return s.segmentFile.WriteAt(p, off)
	}
	if f.half {
		n, err := s.segmentFile.WriteAt(p[:len(p)/2], off)
		return n, errors.Join(err, f.err)
	}
	return 0, f.err
}

func (s failingSegment) Datasync() error {
	if f, ok := s.disk.strike("sync"); ok && f.err != nil {
		return f.err
	}
	return s.segmentFile.Datasync()
}

func (s failingSegment) Truncate(size int64) error {
	if f, ok := s.disk.strike("truncate"); ok && f.err != nil {
		return f.err
	}
	return s.segmentFile.Truncate(size)
}
