package snapshots

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Room is how much snapshots may take of the host. Zero fields allow nothing.
type Room struct {
	Bytes   int64 // of all of them, drafts included
	Count   int   // drafts not included
	Reserve int64 // bytes that stay free on the file system
}

// check tells whether there is room for so many bytes more. Needs mu.
func (s *Store) check(about int64, another bool) error {
	used := about
	for _, n := range s.drafts {
		used += n
	}
	for _, k := range s.known {
		used += k.disk
	}
	if another && len(s.known) >= s.room.Count {
		return fault.Exhausted(0, "there are %d snapshots already (snapshots.max_count in the configuration); remove some", len(s.known))
	}
	if used > s.room.Bytes {
		return fault.Exhausted(0, "with another one snapshots would take about %d MiB, and may take %d (snapshots.max_bytes in the configuration); remove some", used>>20, s.room.Bytes>>20)
	}
	var on unix.Statfs_t
	if err := unix.Statfs(s.dir, &on); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the free space of %s is not known", s.dir)
	}
	if free := int64(on.Bavail) * on.Bsize; free-about < s.room.Reserve {
		return fault.Exhausted(0, "%d MiB are free in %s, and %d must stay free (snapshots.reserve in the configuration)", free>>20, s.dir, s.room.Reserve>>20)
	}
	return nil
}

// diskUse is how many bytes of the disk a directory's files take; holes are none.
// What can't be read counts as nothing.
func diskUse(dir string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil && unix.Lstat(path, &st) == nil {
			total += st.Blocks * 512
		}
		return nil // the rest still counts
	})
	return total
}
