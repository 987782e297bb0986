package exchange_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
)

// TestEscapesOfAnyBytes: guests and hosts write what is unescaped, so no text whatever ends the program. The texts
// are made of what escapes are made of.
func TestEscapesOfAnyBytes(t *testing.T) {
	for _, text := range []string{`\N}`, `a\N}b`, `\\N}`, `\N{}`, `\o}`, `\o{}`, `\x}`, `\x{}`, `\u}`, `\u{}`, `&#;`, `&#x;`, `&}`, `%u}`} {
		_ = exchange.Unescape(text)
		if exchange.Finder("s3cr3t-0123456789")([]byte(text)) {
			t.Errorf("a secret is found in %q", text)
		}
	}
	const letters = "\\\\\\{}{}NNuUxo%&#;=\r\n+-0123456789abcdefABCDEF lt\x00\x7f\xc2\xad\xff"
	random := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		text := make([]byte, 1+random.IntN(12))
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		_ = exchange.Unescape(string(text))
		if exchange.Finder("s3cr3t-0123456789")(text) {
			t.Errorf("a secret is found in %q", text)
		}
	}
	if got := exchange.Unescape(`\N{LATIN SMALL LETTER A}\N{U+62}`); got != "ab" {
		t.Errorf("names are read as %q", got)
	}
}
