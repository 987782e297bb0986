package npm

import (
	"encoding/hex"

	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
)

const sha1Size = 20

// strongest reads `dist.integrity`, digests in base64 separated by blanks, of
// which clients check the strongest, and `dist.shasum`, a SHA-1 in hex. It gives
// "algorithm:<hex>", or "" if there is neither; reason says why a file has none
// that can be relied on.
func strongest(sri, shasum string) (found, reason string) {
	switch digests, malformed := digest.Strongest(sri); {
	case malformed != "":
		return "", "its integrity has a digest of the wrong length"
	case len(digests) > 1:
		return "", "its integrity gives two digests of one algorithm"
	case len(digests) == 1:
		return digests[0], ""
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
