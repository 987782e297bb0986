package exchange

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestReleasedBytesAreMaskedInPlace: a text with values comes in any pieces, and some of what waits is handed
// on in between. Each byte comes once, in its place, and as what it was, or as a mask where a value is. Bytes
// that were not handed on early are masked as if the text had come whole.
func TestReleasedBytesAreMaskedInPlace(t *testing.T) {
	const value = "sk-Zq81xKf0TwLm33p" // of whole groups in base64
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{value, "%73k-Zq81xKf0TwLm33p", "c2stWnE4MXhLZjBUd0xtMzNw", value[:9], ".", " ", "\n", "},", `\u{73}`, strings.Repeat("a", 300), strings.Repeat("b", 9_000)}
	for range 500 {
		text := ""
		for range 1 + r.IntN(12) {
			text += parts[r.IntN(len(parts))]
		}
		whole := seek(value).masked(text)
		s := scan{needles: seek(value)}
		got, early := "", make([]bool, 0, len(text))
		add := func(b []byte, released bool) {
			got += string(b)
			for range b {
				early = append(early, released)
			}
		}
		for rest := text; rest != ""; {
			n := 1 + r.IntN(min(len(rest), []int{3, 40, 20_000}[r.IntN(3)]))
			b, _ := s.takeMore([]byte(rest[:n]), false)
			rest = rest[n:]
			add(b, false)
			for s.heldBytes() > 0 && r.IntN(4) == 0 {
				add(s.releaseBytes(1+r.IntN(s.heldBytes())), true)
			}
		}
		b, _ := s.takeMore(nil, true)
		add(b, false)
		if len(got) != len(text) {
			t.Fatalf("of %d bytes came %d", len(text), len(got))
		}
		for i := range text {
			if got[i] != whole[i] && (!early[i] || got[i] != text[i]) {
				t.Fatalf("of %q came %q, at %d %q, released early: %t, and whole it is %q", text, got, i, got[i], early[i], whole)
			}
		}
	}
}
