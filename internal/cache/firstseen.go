package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Key names a file of an upstream.
type Key struct {
	Ecosystem string `json:"ecosystem"`
	Upstream  string `json:"upstream"` // the index's URL
	Project   string `json:"project"`  // canonical
	File      string `json:"file"`
}

// binding is what a first-digest file holds.
type binding struct {
	Key    Key    `json:"key"`
	Digest string `json:"digest"`
}

func (s *Store) seenPath(k Key) string {
	sum := sha256.New()
	for _, part := range []string{k.Ecosystem, k.Upstream, k.Project, k.File} {
		sum.Write([]byte(part))
		sum.Write([]byte{0}) // no part has one
	}
	h := hex.EncodeToString(sum.Sum(nil))
	return filepath.Join(s.dir, dirSeen, h[:2], h)
}

// FirstDigest gives the digest that binds a file, "" if there is none yet. A
// binding that can't be read is an error: the file must then not be served.
func (s *Store) FirstDigest(k Key) (string, error) {
	data, err := os.ReadFile(s.seenPath(k))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the first digest of the file can't be read")
	}
	var b binding
	if err := json.Unmarshal(data, &b); err != nil || b.Key != k {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the record of the file's first digest is damaged")
	}
	if _, err := parseDigest(b.Digest); err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the record of the file's first digest is damaged")
	}
	return b.Digest, nil
}

// Bind makes digest the file's for ever, unless it has one; it returns the one
// that it has. The binding is durable when Bind returns.
func (s *Store) Bind(k Key, digest string) (first string, err error) {
	if _, err := parseDigest(digest); err != nil {
		return "", err
	}
	if first, err := s.FirstDigest(k); err != nil || first != "" {
		return first, err
	}
	data, err := json.Marshal(binding{Key: k, Digest: digest})
	if err != nil {
		return "", fault.Wrap(fault.ErrInvalid, err, "the file's key can't be written")
	}
	temp, err := s.writeTemp("seen-", true, append(data, '\n'))
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temp) }() // Open clears what is left
	path := s.seenPath(k)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	// A link fails where the name exists, and the name never holds half a file.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return "", err
	}
	return s.FirstDigest(k)
}

// writeTemp writes a file into the temporary directory.
func (s *Store) writeTemp(prefix string, durable bool, chunks ...[]byte) (string, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, dirTemp), prefix)
	if err != nil {
		return "", fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	for _, c := range chunks {
		if err == nil {
			_, err = f.Write(c)
		}
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name()) // Open clears what is left
		return "", fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	return f.Name(), nil
}
