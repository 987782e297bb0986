package daemon

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"

	"github.com/cofferdam-dev/cofferdam/internal/keptfile"
	"github.com/cofferdam-dev/cofferdam/internal/wholefile"
)

// findingsKey reads the key that found values' digests are made with, and whose runs are known
// again when that was erased; or makes one. Without it those on record can't be tried out for a
// value that one suspects.
func findingsKey(path string) ([]byte, error) {
	key, err := keptfile.ReadKey("the key of findings", path, sha256.Size)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, sha256.Size)
		rand.Read(key) // never fails: it ends the process instead
		return key, wholefile.Create(path, key, 0o600)
	}
	return key, err
}
