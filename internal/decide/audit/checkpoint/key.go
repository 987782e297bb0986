package checkpoint

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/mod/sumdb/note"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Key is a private key, Ed25519. Its name is the origin of the log it signs.
type Key struct {
	signer note.Signer
	secret string
	public string
}

// Name is the key's name.
func (k Key) Name() string { return k.signer.Name() }

// Public is the line that verifies what the key signs.
func (k Key) Public() string { return k.public }

// Secret is the text of the key's file, newline included.
func (k Key) Secret() []byte { return []byte(k.secret + "\n") }

// Generate makes a key. An empty name makes one that no other log has.
func Generate(name string) (Key, error) {
	if name == "" {
		id := make([]byte, 8)
		if _, err := rand.Read(id); err != nil {
			return Key{}, err
		}
		name = "cofferdam-audit/" + hex.EncodeToString(id)
	}
	secret, _, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return Key{}, err
	}
	return parseKey(secret)
}

// maxKeyFile is above the size of any right key file, in bytes.
const maxKeyFile = 1 << 10

// ReadKey reads a private key's file. It is refused, with fault.ErrForbidden, if
// others can read or change it or it is another user's, and with ErrInvalid if it
// is no key or a weak one. A missing file is os.ErrNotExist.
func ReadKey(path string) (Key, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return Key{}, err
	}
	if err != nil {
		return Key{}, fault.Wrap(fault.ErrUnavailable, err, "the audit log's key %s can't be read", path)
	}
	defer f.Close()
	if err := keptWell(f, path); err != nil {
		return Key{}, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return Key{}, fault.Wrap(fault.ErrUnavailable, err, "the audit log's key %s can't be read", path)
	}
	k, err := parseKey(string(bytes.TrimSuffix(text, []byte("\n"))))
	if err != nil {
		return Key{}, fault.Invalid("the audit log's key %s is refused: %s", path, err)
	}
	return k, nil
}

func keptWell(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the audit log's key %s can't be looked at", path)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fault.New(fault.ErrForbidden, "the audit log's key %s is refused: it is no regular file", path)
	case !ok || int(stat.Uid) != os.Geteuid():
		return fault.New(fault.ErrForbidden, "the audit log's key %s is refused: it belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return fault.New(fault.ErrForbidden, "the audit log's key %s is refused: its mode is %#o, so others can get at it; rotate it if they may have, and chmod 600 it", path, info.Mode().Perm())
	}
	return nil
}

// parseKey reads "PRIVATE+KEY+name+hash+base64(1 || seed)".
func parseKey(secret string) (Key, error) {
	parts := strings.SplitN(secret, "+", 5)
	if len(parts) != 5 || parts[0] != "PRIVATE" || parts[1] != "KEY" {
		return Key{}, errors.New("it is no private key of a log")
	}
	data, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil {
		return Key{}, errors.New("it is damaged")
	}
	if len(data) != 1+ed25519.SeedSize {
		return Key{}, fmt.Errorf("it has %d bytes, and a key has %d", max(0, len(data)-1), ed25519.SeedSize)
	}
	seed := data[1:]
	if isWeakSeed(seed) {
		return Key{}, errors.New("it is weak: its bytes are not random")
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		return Key{}, errors.New("it is damaged")
	}
	public, ok := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if !ok {
		return Key{}, errors.New("it is damaged")
	}
	text, err := note.NewEd25519VerifierKey(parts[2], public)
	if err != nil {
		return Key{}, err
	}
	return Key{signer: signer, secret: secret, public: text}, nil
}

// isWeakSeed: 32 random bytes have fewer than 16 different values once in 10^12 times.
func isWeakSeed(seed []byte) bool {
	seen := map[byte]bool{}
	for _, b := range seed {
		seen[b] = true
	}
	return len(seen) < 16
}
