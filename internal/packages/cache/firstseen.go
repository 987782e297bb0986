package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Key names a file of an upstream.
type Key struct {
	Ecosystem string `json:"ecosystem"`
	Upstream  string `json:"upstream"` // the index's URL
	Project   string `json:"project"`  // canonical
	File      string `json:"file"`
}

// Binding is what a file of an upstream was when its bytes were first here, for ever.
type Binding struct {
	// Given is the digest as the index or a witness gave it: any algorithm, or
	// "" if nobody gave one.
	Given string `json:"digest"`
	Sums
	First time.Time `json:"first,omitzero"`
}

// record is what a binding's file holds. Older ones have the key and the digest
// only, which then is the sha256.
type record struct {
	Key Key `json:"key"`
	Binding
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

// Binding gives what binds a file; ok is false if nothing does yet. A binding
// that can't be read is an error: the file must then not be served.
func (s *Store) Binding(k Key) (b Binding, ok bool, err error) {
	path := s.seenPath(k)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Binding{}, false, nil
	}
	if err != nil {
		return Binding{}, false, fault.Wrap(fault.ErrUnavailable, err, "the record of what the file first was can't be read")
	}
	var r record
	err = json.Unmarshal(data, &r)
	if r.SHA256 == "" {
		r.SHA256 = r.Given
	}
	if _, bad := parseDigest(r.SHA256); err != nil || bad != nil || r.Key != k {
		return Binding{}, false, fault.Wrap(fault.ErrUnavailable, err, "the record of what the file first was is damaged")
	}
	if r.First.IsZero() {
		if info, err := os.Stat(path); err == nil {
			r.First = info.ModTime()
		}
	}
	return r.Binding, true, nil
}

// Bind makes b the file's for ever, unless it has a binding; it returns the one
// that the file has, which is durable then.
func (s *Store) Bind(k Key, b Binding) (Binding, error) {
	if _, err := parseDigest(b.SHA256); err != nil {
		return Binding{}, err
	}
	if first, ok, err := s.Binding(k); err != nil || ok {
		return first, err
	}
	data, err := json.Marshal(record{Key: k, Binding: b})
	if err != nil {
		return Binding{}, fault.Wrap(fault.ErrInvalid, err, "the file's key can't be written")
	}
	temp, err := s.writeTemp("seen-", true, append(data, '\n'))
	if err != nil {
		return Binding{}, err
	}
	defer func() { _ = os.Remove(temp) }() // Open clears what is left
	path := s.seenPath(k)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Binding{}, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	// A link fails where the name exists, and the name never holds half a file.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return Binding{}, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be written")
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return Binding{}, err
	}
	first, ok, err := s.Binding(k)
	if err == nil && !ok {
		err = fault.New(fault.ErrUnavailable, "the record of what the file first was has gone")
	}
	return first, err
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
