//go:build !leaky

package approval

import (
	"crypto/rand"
	"strings"
)

// alphabet leaves out what is confused when it is read aloud or typed off a
// screen: 0 o, 1 l i.
const alphabet = "23456789abcdefghjkmnpqrstuvwxyz"

const idLength = 6

// newID is a prefix and six characters: one of about 900 million. An id tells nothing of how
// many others there are.
func newID(prefix string) string {
	var b strings.Builder
	b.WriteString(prefix)
	for buf := make([]byte, 1); b.Len() < len(prefix)+idLength; {
		_, _ = rand.Read(buf) // never fails: it ends the program instead
		if most := 256 / len(alphabet) * len(alphabet); int(buf[0]) < most {
			b.WriteByte(alphabet[int(buf[0])%len(alphabet)])
		}
	}
	return b.String()
}
