package npm

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const sha1Size = 20

// algorithms are those of subresource integrity, strongest first, with the
// length of their digests in bytes.
func algorithms() []struct {
	name string
	size int
} {
	return []struct {
		name string
		size int
	}{{"sha512", 64}, {"sha384", 48}, {"sha256", 32}, {"sha1", sha1Size}}
}

// strongest reads `dist.integrity`, digests in base64 separated by blanks, of
// which clients check the strongest, and `dist.shasum`, a SHA-1 in hex. It gives
// "algorithm:<hex>", or "" if there is neither; reason says why a file has none
// that can be relied on.
func strongest(integrity, shasum string) (digest, reason string) {
	words := strings.Fields(integrity)
	for _, algorithm := range algorithms() {
		found := ""
		for _, word := range words {
			encoded, ok := strings.CutPrefix(word, algorithm.name+"-")
			if !ok {
				continue
			}
			encoded, _, _ = strings.Cut(encoded, "?") // options, which nobody has defined
			sum, err := base64.StdEncoding.Strict().DecodeString(encoded)
			if err != nil || len(sum) != algorithm.size {
				return "", "its integrity has a digest of the wrong length"
			}
			d := algorithm.name + ":" + hex.EncodeToString(sum)
			if found != "" && found != d {
				return "", "its integrity gives two digests of one algorithm"
			}
			found = d
		}
		if found != "" {
			return found, ""
		}
	}
	if shasum == "" {
		return "", ""
	}
	sum, err := hex.DecodeString(shasum)
	if err != nil || len(sum) != sha1Size {
		return "", "its shasum is no SHA-1"
	}
	return "sha1:" + hex.EncodeToString(sum), ""
}
