package cache

import (
	"crypto/sha1" //nolint:gosec // for indexes that give nothing better: such a digest counts as weak
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Sums are the digests of some bytes, "algorithm:<hex>"; "" was not summed.
type Sums struct {
	SHA256 string `json:"sha256"`
	SHA512 string `json:"sha512,omitempty"`
	SHA1   string `json:"sha1,omitempty"`
}

// Of gives the sum of a digest's own algorithm, "" if there is none.
func (s Sums) Of(digest string) string {
	algorithm, _, _ := strings.Cut(digest, ":")
	switch algorithm {
	case "sha256":
		return s.SHA256
	case "sha512":
		return s.SHA512
	case "sha1":
		return s.SHA1
	}
	return ""
}

// SumAll reads to the end and sums in every algorithm.
func SumAll(r io.Reader) (Sums, error) {
	s := newSummer()
	s.sha1 = sha1.New() //nolint:gosec // as at the import
	if _, err := io.Copy(summing{&s}, r); err != nil {
		return Sums{}, fault.Wrap(fault.ErrUnavailable, err, "the cache can't be read")
	}
	return s.sumsNow(), nil
}

// summer sums as bytes go by; sha1 only if it is set.
type summer struct {
	sha256, sha512, sha1 hash.Hash
}

func newSummer() summer { return summer{sha256: sha256.New(), sha512: sha512.New()} }

func (s *summer) allHashes() []hash.Hash {
	if s.sha1 == nil {
		return []hash.Hash{s.sha256, s.sha512}
	}
	return []hash.Hash{s.sha256, s.sha512, s.sha1}
}

func (s *summer) writeBytes(p []byte) {
	for _, h := range s.allHashes() {
		h.Write(p)
	}
}

func (s *summer) resetHashes() {
	for _, h := range s.allHashes() {
		h.Reset()
	}
}

func (s *summer) sumsNow() Sums {
	out := Sums{SHA256: "sha256:" + hex.EncodeToString(s.sha256.Sum(nil)), SHA512: "sha512:" + hex.EncodeToString(s.sha512.Sum(nil))}
	if s.sha1 != nil {
		out.SHA1 = "sha1:" + hex.EncodeToString(s.sha1.Sum(nil))
	}
	return out
}

// summing is a summer as a writer.
type summing struct{ s *summer }

// Write implements io.Writer.
func (s summing) Write(p []byte) (int, error) {
	s.s.writeBytes(p)
	return len(p), nil
}
