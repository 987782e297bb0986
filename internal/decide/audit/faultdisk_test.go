package audit

import (
	"errors"
	"slices"
	"strings"
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
	// files are the endings of the names of the files that are struck; none: the
	// journal's. The others belong to other goroutines, too.
	files []string
}

// failure is what a failing call does: an error, or half the work, or both.
type failure struct {
	err  error
	half bool
}

func (d *failingDisk) strike(path, kind string) (failure, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := d.files
	if files == nil {
		files = []string{plainSuffix, "jsonl.torn"}
	}
	if d.only != "" && d.only != kind || !slices.ContainsFunc(files, func(end string) bool { return strings.HasSuffix(path, end) }) {
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

func (d *failingDisk) openFile(path string) (writable, error) {
	if f, ok := d.strike(path, "open"); ok && f.err != nil && !errors.Is(f.err, unix.EINTR) {
		return nil, f.err
	}
	file, err := d.osDisk.openFile(path)
	return failingFile{file, d, path}, err
}

func (d *failingDisk) rename(from, to string) error {
	if f, ok := d.strike(to, "rename"); ok && f.err != nil {
		return f.err
	}
	return d.osDisk.rename(from, to)
}

func (d *failingDisk) removeFile(path string) error {
	if f, ok := d.strike(path, "remove"); ok && f.err != nil {
		return f.err
	}
	return d.osDisk.removeFile(path)
}

// syncDir is counted with the files of the journal: they are what it is for.
func (d *failingDisk) syncDir(dir string) error {
	if f, ok := d.strike(plainSuffix, "syncdir"); ok && f.err != nil {
		return f.err
	}
	return d.osDisk.syncDir(dir)
}

type failingFile struct {
	writable
	disk *failingDisk
	path string
}

func (s failingFile) WriteAt(p []byte, off int64) (int, error) {
	f, ok := s.disk.strike(s.path, "write")
	if !ok {
		return s.writable.WriteAt(p, off)
	}
	if f.half {
		n, err := s.writable.WriteAt(p[:len(p)/2], off)
		return n, errors.Join(err, f.err)
	}
	return 0, f.err
}

func (s failingFile) Datasync() error {
	if f, ok := s.disk.strike(s.path, "sync"); ok && f.err != nil {
		return f.err
	}
	return s.writable.Datasync()
}

func (s failingFile) Truncate(size int64) error {
	if f, ok := s.disk.strike(s.path, "truncate"); ok && f.err != nil {
		return f.err
	}
	return s.writable.Truncate(size)
}
