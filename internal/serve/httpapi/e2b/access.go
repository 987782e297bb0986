package e2b

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
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
// Without that file all tokens of all sandboxes change. One that is not kept well, or
// is no key, is refused.
func LoadKeys(path string, s backend.Sandboxes) (*Keys, error) {
	key, err := ReadKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = makeKey(path); err != nil {
			err = fault.Wrap(fault.ErrUnavailable, err, "the key of sandboxes' access tokens, %s, can't be made", path)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Keys{key: key, sandboxes: s}, nil
}

// ReadKey reads the installation's key. It is refused with fault.ErrForbidden if others
// can get at it, and with ErrConflict if it is no key or one that can be guessed. A
// missing file is fs.ErrNotExist.
func ReadKey(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the key of sandboxes' access tokens, %s, can't be read", path)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the key of sandboxes' access tokens, %s, can't be read", path)
	}
	const refused = "the key of sandboxes' access tokens, %s, is refused: "
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.ErrForbidden, refused+"it is no regular file", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return nil, fault.New(fault.ErrForbidden, refused+"it belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fault.New(fault.ErrForbidden, refused+"its mode is %#o, so others can get at it; move it away for a new one if they may have, else chmod 600 it", path, info.Mode().Perm())
	}
	key, err := io.ReadAll(io.LimitReader(file, keyBytes+1))
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the key of sandboxes' access tokens, %s, can't be read", path)
	}
	if len(key) != keyBytes || guessable(key) {
		return nil, fault.New(fault.ErrConflict, refused+"it is not %d random bytes; move it away for a new one", path, keyBytes)
	}
	return key, nil
}

// guessable: 32 random bytes have fewer than 16 different values once in 10^12 times.
func guessable(key []byte) bool {
	seen := map[byte]bool{}
	for _, b := range key {
		seen[b] = true
	}
	return len(seen) < 16
}

// makeKey writes a new key whole or not at all.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails: it ends the process instead
	return key, atomicfile.Replace(path, key, 0o600)
}

// Token implements Access: 64 hexadecimal digits.
func (k *Keys) Token(sandbox string) string { return k.sumFor("data", sandbox) }

// Traffic implements Access. It is "" for a sandbox whose ports are open to all
// who reach the daemon, which is what clients get unless they ask otherwise.
func (k *Keys) Traffic(sandbox string) string {
	sb, err := backend.Find(k.sandboxes, sandbox, backend.AnyOwnersViewer)
	if err == nil && publicTraffic(sb.Info().Labels) {
		return ""
	}
	return k.sumFor("traffic", sandbox)
}

// Contexts implements Access. It is the traffic token whether the sandbox's own ports need it
// or not: who makes and ends contexts is to have more than the sandbox's id.
func (k *Keys) Contexts(sandbox string) string { return k.sumFor("traffic", sandbox) }

func (k *Keys) sumFor(use, sandbox string) string {
	h := hmac.New(sha256.New, k.key)
	h.Write([]byte(use + ":" + sandbox)) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}
