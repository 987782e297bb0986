package lockfile

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/integrity"
)

// strength orders the algorithms that nobody can forge by their length in
// bytes; 0 for all others.
func strength(algorithm string) int {
	switch algorithm {
	case "sha256":
		return 32
	case "sha384":
		return 48
	case "sha512":
		return 64
	}
	return 0
}

// weak lists algorithms whose hashes can be forged, to be named as such.
func weak(algorithm string) bool {
	return slices.Contains([]string{"md5", "sha1", "sha224", "blake2b"}, algorithm)
}

// hexDigest reads a hash in hexadecimal. ok is false for a weak one.
func (b *builder) hexDigest(line int, algorithm, hash string) (digest string, ok bool, err error) {
	if weak(algorithm) {
		return "", false, nil
	}
	sum, err := hex.DecodeString(hash)
	if n := strength(algorithm); n == 0 || err != nil || len(sum) != n {
		return "", false, b.wrong(line, "%q is not a hash", excerpt.Of(algorithm+":"+hash, maxQuoted))
	}
	return algorithm + ":" + hex.EncodeToString(sum), true, nil
}

// colonDigest reads "algorithm:hex".
func (b *builder) colonDigest(line int, hash string) (digest string, ok bool, err error) {
	algorithm, sum, _ := strings.Cut(hash, ":")
	return b.hexDigest(line, algorithm, sum)
}

// integrity reads subresource integrity. There is no digest if the strongest algorithm in
// it can be forged.
func (b *builder) integrity(line int, sri string) ([]string, error) {
	digests, malformed := integrity.Strongest(sri)
	if malformed != "" {
		return nil, b.wrong(line, "%q is not an integrity hash", excerpt.Of(malformed, maxQuoted))
	}
	if len(digests) == 0 || strings.HasPrefix(digests[0], "sha1:") {
		return nil, nil
	}
	return digests, nil
}
