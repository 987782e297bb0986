package snapshots

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Room is how much snapshots may take of the host. Zero fields allow nothing.
type Room struct {
	Bytes   int64 // of all of them, with drafts and those that are being removed
	Count   int   // drafts not included
	Reserve int64 // bytes that stay free on the file system
}

// One token's snapshots may take three quarters of the room, so that no one of them keeps the others
// from having any; and a token that has none may have one, however many there are.
const shareOf, shareIn = 3, 4

// checkRoom tells whether so many bytes more of an owner's are within what there may be: a token's id, or "",
// which is the host's. It tells a token nothing of how much others have. Needs mu.
func (s *Store) checkRoom(owner string, about int64, another bool) error {
	used, own, count := about, about, 0
	for _, d := range s.drafts {
		used += d.bytes
		if d.owner == owner {
			own += d.bytes
		}
	}
	for _, k := range s.known {
		used += k.disk
		if k.manifest.Owner == owner {
			own += k.disk
			count++
		}
	}
	ofToken := owner != ""
	switch most := max(s.room.Count*shareOf/shareIn, 1); {
	case another && ofToken && count >= most:
		return fault.Exhausted(0, "the token has %s, as many as one may have of the %d that there may be (snapshots.max_count in the configuration); remove some", text.Count(count, "snapshot", "snapshots"), s.room.Count)
	case another && len(s.known) >= s.room.Count && (!ofToken || count > 0 || len(s.known) >= s.room.Count*shareIn/shareOf+1):
		return fault.Exhausted(0, "there are as many snapshots as there may be (%d, snapshots.max_count in the configuration); remove some", s.room.Count)
	}
	switch most := s.room.Bytes / shareIn * shareOf; {
	case used > s.room.Bytes:
		return fault.Exhausted(0, "with another one snapshots would take more than the %d MiB that they may (snapshots.max_bytes in the configuration); remove some", s.room.Bytes>>20)
	case ofToken && own > most:
		return fault.Exhausted(0, "with another one the token's snapshots would take about %d MiB, and may take %d (three quarters of snapshots.max_bytes in the configuration); remove some", own>>20, most>>20)
	}
	return nil
}

// checkDisk tells whether the disk has room for so many bytes more. It asks the file system, so that nobody
// holds mu meanwhile.
func (s *Store) checkDisk(about int64) error {
	var on unix.Statfs_t
	if err := unix.Statfs(s.dir, &on); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the free space for snapshots is not known")
	}
	if free := int64(on.Bavail) * on.Bsize; free-about < s.room.Reserve {
		s.log.Warn("there is no room for a snapshot", "path", s.dir, "free_mib", free>>20, "reserve_mib", s.room.Reserve>>20)
		return fault.Exhausted(0, "the disk has less free space than must stay free (%d MiB, snapshots.reserve in the configuration); remove a snapshot, or have the host's operator free some: cofferdam doctor there says which disk it is", s.room.Reserve>>20)
	}
	return nil
}

// diskUse is how many bytes of the disk a directory's files take; holes are none.
// A file that can't be read counts as nothing.
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
