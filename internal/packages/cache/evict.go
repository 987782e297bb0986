package cache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// mostStuck is how many blobs that can't be removed are tried at a time. They are counted still.
const mostStuck = 100

// evictBlobs removes the least recently used blobs until at most most bytes are left. Open
// artifacts stay, so the total may remain above. One does so at a time, also for those who come
// meanwhile; nobody else waits for it: under the lock that each file which is served needs, a blob
// only gets another name.
func (s *Store) evictBlobs(most int64) {
	if !s.evicting.TryLock() {
		return
	}
	defer s.evicting.Unlock()
	for stuck := 0; stuck < mostStuck; {
		aside, more, err := s.takeOldest(most)
		switch {
		case !more:
			return
		case err != nil:
			stuck++
		default:
			_ = os.Remove(aside) // Open clears what is left
		}
	}
}

// takeOldest forgets the blob that was used the longest ago and moves it aside; more false: there is room
// enough, or all are open. One that can't be moved is counted as the one that was used last. A reader of
// it, also in another process, has its bytes open and is not torn.
func (s *Store) takeOldest(most int64) (aside string, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total <= most {
		return "", false, nil
	}
	for at := s.order.Front(); at != nil; at = at.Next() {
		h, _ := at.Value.(string)
		e := s.blobs[h]
		if e.open > 0 {
			continue
		}
		aside = s.asidePath()
		if err := os.Rename(s.blobPath(h), aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.order.MoveToBack(at)
			return "", true, err
		}
		s.dropBlob(h, e)
		return aside, true, nil
	}
	return "", false, nil
}

// asidePath is a name of something that is being removed.
func (s *Store) asidePath() string {
	return filepath.Join(s.dir, dirTemp, "evicted-"+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(s.evicted.Add(1), 10))
}

func (s *Store) releaseBlob(h string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.blobs[h]; e != nil {
		e.open--
	}
}
