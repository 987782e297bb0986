package text

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"
)

const ellipsis = "..."

// Shorten returns s if it has at most so many bytes, else its beginning with "..." at the end, which
// together have no more. It cuts no character in two. It makes nothing printable.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := max(0, most-len(ellipsis))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis[:min(most, len(ellipsis))]
}

// Seal returns s if it has at most so many bytes, else its beginning with how long it is and a
// digest of all of it: "beginning... [4096 bytes, sha256 9f86d081884c7d659a2feaa0c55ad015]". It
// is for text by which a person decides: two that differ anywhere never look the same, unless
// one was written to end in the other's seal, so what an answer is bound to has its digest
// elsewhere, too. Bytes that are no UTF-8 become U+FFFD, and such text is always sealed. The seal is whole though
// most has no room for it: about 60 bytes.
func Seal(s string, most int) string {
	if len(s) <= most && utf8.ValidString(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	seal := fmt.Sprintf(" [%d bytes, sha256 %x]", len(s), sum[:sealed])
	return Shorten(strings.ToValidUTF8(s, "\ufffd"), max(most-len(seal), len(ellipsis))) + seal
}

// sealed is how many bytes of a digest are shown: nobody finds two texts that share them.
const sealed = 16

// DigestList identifies a list of which a part is shown. It returns the first half of the sha256, in hexadecimal,
// of all texts in their order, each with its length.
func DigestList(texts []string) string {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(text), text) // a hash takes all
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:sealed])
}
