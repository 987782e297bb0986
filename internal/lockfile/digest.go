package lockfile

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
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
		return "", false, b.wrong(line, "%q is not a hash", clip(algorithm+":"+hash))
	}
	return algorithm + ":" + hex.EncodeToString(sum), true, nil
}

// colonDigest reads "algorithm:hex".
func (b *builder) colonDigest(line int, hash string) (digest string, ok bool, err error) {
	algorithm, sum, _ := strings.Cut(hash, ":")
	return b.hexDigest(line, algorithm, sum)
}

// integrity reads subresource integrity: "algorithm-base64", several with blanks
// between. Only the strongest algorithm's count, as for those who check it.
func (b *builder) integrity(line int, name, sri string) ([]string, error) {
	var digests []string
	best := 0
	for field := range strings.FieldsSeq(sri) {
		hash, _, _ := strings.Cut(field, "?")
		algorithm, encoded, _ := strings.Cut(hash, "-")
		n := strength(algorithm)
		if n == 0 && weak(algorithm) {
			continue
		}
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if n == 0 || err != nil || len(sum) != n {
			return nil, b.wrong(line, "%q is not an integrity hash", clip(field))
		}
		if n > best {
			best, digests = n, nil
		}
		if n == best {
			digests = append(digests, algorithm+":"+hex.EncodeToString(sum))
		}
	}
	if len(digests) == 0 {
		return nil, b.wrong(line, "%s has only a weak hash, which can be forged; %s", name, lockAgain)
	}
	return digests, nil
}
