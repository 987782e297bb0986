package lockfile

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
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

// isWeak lists algorithms whose hashes can be forged, to be named as such.
func isWeak(algorithm string) bool {
	return slices.Contains([]string{"md5", "sha1", "sha224", "blake2b"}, algorithm)
}

// hexDigest reads a hash in hexadecimal. lacks says why it pins nothing, "" if it does.
func hexDigest(algorithm, hash string) (digest, lacks string) {
	if isWeak(algorithm) {
		return "", hasWeakHash
	}
	sum, err := hex.DecodeString(hash)
	if n := strength(algorithm); n == 0 || err != nil || len(sum) != n {
		return "", hasOddHash
	}
	return algorithm + ":" + hex.EncodeToString(sum), ""
}

// colonDigest reads "algorithm:hex".
func colonDigest(hash string) (digest, lacks string) {
	algorithm, sum, _ := strings.Cut(hash, ":")
	return hexDigest(algorithm, sum)
}

// integrityDigests reads subresource integrity. lacks says why it pins nothing, such as that the strongest algorithm in it can be forged.
func integrityDigests(sri string) (digests []string, lacks string) {
	digests, malformed := digest.Strongest(sri)
	switch {
	case malformed != "":
		return nil, hasOddHash
	case len(digests) == 0 || strings.HasPrefix(digests[0], "sha1:"):
		return nil, hasWeakHash
	}
	return digests, ""
}
