package daemon

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
)

// loadFindingsKey reads the key that found values' digests are made with, and whose runs are known
// again when that was erased; or makes one. Without it those on record can't be tried out for a
// value that one suspects.
func loadFindingsKey(path string) ([]byte, error) {
	key, err := privatefile.ReadKey("the key of findings", path, sha256.Size)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, sha256.Size)
		rand.Read(key) // never fails: it ends the process instead
		return key, atomicfile.Create(path, key, 0o600)
	}
	return key, err
}

// positionKey is what conceals numbers of events and records from tokens. It is made of the
// key of findings, which lies at that path, so that it is the same after a restart.
func positionKey(findings string) ([]byte, error) {
	key, err := loadFindingsKey(findings)
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, key, nil, "positions that tokens are told", sha256.Size)
}
