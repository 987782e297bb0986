// Package redact takes secrets of known forms out of text that is kept where nobody should
// read one: as they are, escaped, and encoded, in all writings that package exchange reads in
// hosts' answers. A text that is kept short is masked first and cut then, since a part of a secret has
// no form by which anybody knows it.
package redact

import (
	"sync"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// longest bounds the secrets of which a part may stand where a text is cut, in bytes as they are
// written.
const longest = 16 << 10

// Masker masks what the rules of a set find.
type Masker struct{ set *dlp.Set }

// New makes one.
func New(set *dlp.Set) Masker { return Masker{set} }

// usual has the rules for keys and tokens. They are the same for everybody: what is kept can't
// be forgotten.
var usual = sync.OnceValue(func() Masker { return New(dlp.NewSet(secrets.Rules()...)) }) //nolint:gochecknoglobals // a constant, made when it is needed

// Text is a text in which each byte of a secret is an asterisk.
func (m Masker) Text(text string) string {
	return exchange.Masked(text, func(piece []byte, visit func(from, to int)) {
		_, found := m.set.Text(string(piece), dlp.Plan{Secrets: dlp.Redact})
		for _, f := range found {
			visit(int(f.At), int(f.At)+f.Length)
		}
	})
}

// Text is a text without the keys and tokens that it has.
func Text(text string) string { return usual().Text(text) }

// Cut is text.Shorten of a text without the secrets that it has: a text of at most so many bytes
// stays as it is, and is masked by whoever keeps it.
func Cut(content string, most int) string {
	if len(content) <= most {
		return content
	}
	looked := min(len(content), most+longest)
	return text.Shorten(Text(content[:looked])+content[looked:], most)
}

// Sealed is text.Seal of a text without the secrets that it has, and the seal is of that: a text of
// at most so many bytes stays as it is, and is masked by whoever keeps it.
func Sealed(content string, most int) string {
	if len(content) <= most && utf8.ValidString(content) {
		return content
	}
	looked := min(len(content), most+longest)
	return text.Seal(Text(content[:looked])+content[looked:], most)
}
