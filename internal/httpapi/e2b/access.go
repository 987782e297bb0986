package e2b

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
)

// Keys makes the access tokens of sandboxes. They are not kept anywhere: each is
// the keyed hash of the sandbox's id, so a restart loses none, and no sandbox, image
// or file of the daemon has one. A copy (a fork, a restore) has an id of its own,
// and so tokens of its own. A sandbox that is resumed keeps its tokens, because
// clients that resume one go on with those that they have.
type Keys struct {
	key       []byte
	sandboxes backend.Sandboxes
}

var _ Access = (*Keys)(nil)

const keyBytes = 32

// LoadKeys reads the installation's key from a file, making it if there is none.
// Without that file all tokens of all sandboxes change.
func LoadKeys(path string, s backend.Sandboxes) (*Keys, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the key of sandboxes' access tokens, %s, can't be had", path)
	}
	if len(key) != keyBytes {
		return nil, fault.New(fault.ErrConflict, "%s has %d bytes, and a key of sandboxes' access tokens has %d; move it away for a new one", path, len(key), keyBytes)
	}
	return &Keys{key: key, sandboxes: s}, nil
}

// makeKey writes a new key whole or not at all.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails: it ends the process instead
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	_, werr := tmp.Write(key)
	return key, errors.Join(werr, tmp.Sync(), tmp.Close(), os.Rename(tmp.Name(), path))
}

// Token implements Access: 64 hexadecimal digits.
func (k *Keys) Token(sandbox string) string { return k.sum("data", sandbox) }

// Traffic implements Access. It is "" for a sandbox whose ports are open to all
// who reach the daemon, which is what clients get unless they ask otherwise.
func (k *Keys) Traffic(sandbox string) string {
	sb, err := k.sandboxes.Get(sandbox)
	if err == nil && publicTraffic(sb.Info().Labels) {
		return ""
	}
	return k.sum("traffic", sandbox)
}

func (k *Keys) sum(use, sandbox string) string {
	h := hmac.New(sha256.New, k.key)
	h.Write([]byte(use + ":" + sandbox)) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}
