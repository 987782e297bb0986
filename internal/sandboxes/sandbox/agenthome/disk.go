package agenthome

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// block is the unit of what the kernel says a file takes.
const block = 512

// onDisk is what a file takes: not how long it says that it is.
func onDisk(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * block
	}
	return info.Size()
}

// Free is how many bytes are free where the homes are, if a sandbox has one.
func (s *Shelf) Free() (bytes int64, taken bool, err error) {
	s.mu.Lock()
	taken = len(s.taken) > 0
	s.mu.Unlock()
	if !taken {
		return 0, false, nil
	}
	var on unix.Statfs_t
	if err := unix.Statfs(s.dir, &on); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, false, nil // the first sandbox with one is being made
		}
		return 0, true, err
	}
	return int64(on.Bavail) * on.Bsize, true, nil
}
