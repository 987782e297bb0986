package digest

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// algorithm is one of subresource integrity, with the length of its digests.
type algorithm struct {
	name string
	size int
}

// algorithms are those that are known, the strongest first. sha1 is among them since
// old releases have nothing else; who relies on a digest has to refuse it.
func algorithms() []algorithm {
	return []algorithm{{"sha512", 64}, {"sha384", 48}, {"sha256", 32}, {"sha1", 20}}
}

// Strongest returns the digests of the strongest algorithm in a text, each once, as
// "algorithm:<hex>"; a file with any one of them is meant. Weaker ones and unknown
// algorithms count for nothing, as for the clients that check. There are none if the
// text has no known algorithm. malformed is the part that is no digest of that
// algorithm: then there are none either.
func Strongest(text string) (digests []string, malformed string) {
	parts := strings.Fields(text)
	for _, a := range algorithms() {
		for _, part := range parts {
			encoded, ok := strings.CutPrefix(part, a.name+"-")
			if !ok {
				continue
			}
			encoded, _, _ = strings.Cut(encoded, "?") // options, which nobody has defined
			sum, err := base64.StdEncoding.Strict().DecodeString(encoded)
			if err != nil || len(sum) != a.size {
				return nil, part
			}
			if d := a.name + ":" + hex.EncodeToString(sum); !slices.Contains(digests, d) {
				digests = append(digests, d)
			}
		}
		if len(digests) > 0 {
			return digests, ""
		}
	}
	return nil, ""
}
