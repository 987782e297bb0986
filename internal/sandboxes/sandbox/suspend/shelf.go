package suspend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Room is how much frozen sandboxes may take of the host. Zero fields allow
// nothing.
type Room struct {
	Bytes   int64 // of all images
	Count   int
	Reserve int64 // bytes that stay free on the file system
}

// atOnce is how many sandboxes are written at one time, and read at one time: more would only slow
// each other down. So each owner has so many, of which some are sure whatever the others have: a
// guest that can't be frozen holds one of its owner's.
func atOnce() fairqueue.Limits { return fairqueue.Limits{All: 6, Each: 3, Sure: 1, Most: 16} }

// Shelf is where the images of frozen sandboxes lie, one directory each, and the room for them. Safe
// for concurrent use.
type Shelf struct {
	dir  string
	room Room
	// A thaw never waits for freezes: a person has answered, and the sandbox is to go on.
	freezes, thaws *fairqueue.Shares

	mu     sync.Mutex // guards images
	images map[string]shelved
}

// shelved is one image.
type shelved struct {
	owner string
	bytes int64 // on disk, or as many as are expected
}

// NewShelf makes a shelf in dir, which must exist and belong to this user alone.
func NewShelf(dir string, room Room) *Shelf {
	return &Shelf{dir: dir, room: room, freezes: fairqueue.New(atOnce()), thaws: fairqueue.New(atOnce()), images: map[string]shelved{}}
}

// Waiting is how many wait for their turn to freeze or to thaw a sandbox.
func (s *Shelf) Waiting() (freezes, thaws int) { return s.freezes.Waiting(), s.thaws.Waiting() }

// Path is where a sandbox's image lies, or would.
func (s *Shelf) Path(id string) string { return filepath.Join(s.dir, id) }

// Keep takes an image of an owner's that is there into account, and returns its size.
func (s *Shelf) Keep(owner, id string) int64 {
	size := diskUse(s.Path(id))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images[id] = shelved{owner, size}
	return size
}

// Has reports whether there is an image of a sandbox, whole or not.
func (s *Shelf) Has(id string) bool {
	_, err := os.Lstat(s.Path(id))
	return err == nil
}

// Drop removes an image, if there is one.
func (s *Shelf) Drop(id string) error {
	if err := os.RemoveAll(s.Path(id)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.images, id)
	return nil
}

// Sweep drops the images of sandboxes that are gone.
func (s *Shelf) Sweep(lives func(id string) bool) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !lives(e.Name()) {
			errs = append(errs, s.Drop(e.Name()))
		}
	}
	return errors.Join(errs...)
}

// takeRoom reserves room for an image of about so many bytes.
func (s *Shelf) takeRoom(owner, id string, about int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkRoom(owner, about); err != nil {
		return err
	}
	s.images[id] = shelved{owner, about}
	return nil
}

// checkRoomNow refuses what take would refuse now.
func (s *Shelf) checkRoomNow(owner string, about int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkRoom(owner, about)
}

// One token's sandboxes may take three quarters of the room, so that no one of them keeps the
// others' from being frozen; and one of a token that has none may be, however many are.
const shareOf, shareIn = 3, 4

// checkRoom tells whether there is room for an image of an owner's: a token's id, or "", which is the
// host's. It needs mu.
func (s *Shelf) checkRoom(owner string, about int64) error {
	used, own, count := about, about, 0
	for _, i := range s.images {
		used += i.bytes
		if i.owner == owner {
			own += i.bytes
			count++
		}
	}
	ofToken := owner != ""
	switch most := max(s.room.Count*shareOf/shareIn, 1); {
	case ofToken && count >= most:
		return fmt.Errorf("the token has %s frozen, as many as one's may be of %d (freeze.max_count in the configuration)", text.Count(count, "sandbox", "sandboxes"), s.room.Count)
	case len(s.images) >= s.room.Count && (!ofToken || count > 0 || len(s.images) >= s.room.Count*shareIn/shareOf+1):
		return fmt.Errorf("as many sandboxes are frozen as may be (%d, freeze.max_count in the configuration)", s.room.Count)
	}
	switch most := s.room.Bytes / shareIn * shareOf; {
	case used > s.room.Bytes:
		return fmt.Errorf("with it frozen sandboxes would take more than the %d MiB that they may (freeze.max_bytes in the configuration)", s.room.Bytes>>20)
	case ofToken && own > most:
		return fmt.Errorf("with it the token's frozen sandboxes would take about %d MiB, and may take %d (three quarters of freeze.max_bytes in the configuration)", own>>20, most>>20)
	}
	var on unix.Statfs_t
	if err := unix.Statfs(s.dir, &on); err != nil {
		return fmt.Errorf("the free space of %s is not known: %w", s.dir, err)
	}
	if free := int64(on.Bavail) * on.Bsize; free-about < s.room.Reserve {
		return fmt.Errorf("%d MiB are free in %s, and %d must stay free (freeze.reserve in the configuration)", free>>20, s.dir, s.room.Reserve>>20)
	}
	return nil
}

// takeTurn waits for one of the few places of an owner's sandboxes that are written, or read.
func takeTurn(ctx context.Context, of *fairqueue.Shares, owner string) (done func(), err error) {
	_, done, err = of.Take(fairqueue.For(ctx, owner))
	return done, err
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
