package approval

import (
	"crypto/rand"
	"strings"
)

// alphabet leaves out what is confused when it is read aloud or typed off a
// screen: 0 o, 1 l i.
const alphabet = "23456789abcdefghjkmnpqrstuvwxyz"

// The beginnings of ids.
const (
	idPrefix    = "ap-"
	groupPrefix = "apg-"
	idLength    = 6
)

// newID is a prefix and six characters: one of about 900 million.
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

// IsGroup tells whether an id is that of a group.
func IsGroup(id string) bool { return strings.HasPrefix(id, groupPrefix) }

// wellFormed tells whether an id can be one of ours: up to 64 of a to z, 0 to 9
// and "-" after the prefix.
func wellFormed(prefix, id string) bool {
	rest, ok := strings.CutPrefix(id, prefix)
	return ok && rest != "" && len(id) <= 64 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
