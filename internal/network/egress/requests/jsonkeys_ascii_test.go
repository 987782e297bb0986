package requests

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"
)

// TestTextsWithoutOtherLettersAreReadBeside: what the text says without its bytes beyond ASCII is read only where that may differ, and comes to
// the same as when it is read all along.
func TestTextsWithoutOtherLettersAreReadBeside(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"_method", "_met", "hod", "method", "http_method", "x", "a_", "é", "\xff", "\xef\xbb\xbf", "\u2028", "\\", "\\u005f", "\\u00", "5f", "\\x5f", "\\N", "\\,", "\n", "\r\n", " ", "\t",
		"\"", "'", ":", "=", "/", "#", "{", "}", ",", "!", "!!", "!<", "%T", "%", "binary", "\x00", "\\u{5f}", "\\u{", "X21ldGhvZA==", "-", ".", "_charset_", "_HttpMethod",
	}
	seed := rand.Uint64()
	d := rand.New(rand.NewPCG(seed, 0))
	named := 0
	for range 40_000 {
		var lazy jsonKeys
		var all, ascii words
		text := ""
		for range 1 + d.IntN(12) {
			text += pieces[d.IntN(len(pieces))]
		}
		for i := range len(text + " ") {
			c := (text + " ")[i]
			lazy.takeByte(c)
			if all.takeByte(c); c < utf8.RuneSelf {
				ascii.takeByte(c)
			}
			is := [3]bool{lazy.words.named || lazy.ascii.named, lazy.words.found || lazy.ascii.found, lazy.words.tagged || lazy.ascii.tagged}
			want := [3]bool{all.named || ascii.named, all.found || ascii.found, all.tagged || ascii.tagged}
			if is != want {
				t.Fatalf("seed %d, %q at byte %d: %v, want %v", seed, text, i, is, want)
			}
		}
		if lazy.words.named || lazy.ascii.named {
			named++
		}
	}
	if named < 1000 {
		t.Errorf("%d of the texts name a method; the test says little", named)
	}
}
