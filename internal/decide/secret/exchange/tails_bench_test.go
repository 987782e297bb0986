package exchange

import (
	"strings"
	"testing"
)

// BenchmarkTails is how long it takes to tell what waits at the end of what has come, by what stands there.
func BenchmarkTails(b *testing.B) {
	for name, unit := range map[string]string{
		"letters": "x", "prose": "some words of prose and such, no more. ", "JSON": `{"delta":"some\nwords","index":0},`,
		"braces behind a percent": "%" + strings.Repeat("}", 150), "braces": "}", "brackets behind an escape": "%1b" + strings.Repeat("]", 150),
	} {
		text := []byte(strings.Repeat(unit, 1<<20/len(unit)))
		needles := seek(guessed)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var t tail
				for at := 0; at < len(text); at += 32 << 10 {
					t.takeMore(text[at:min(at+32<<10, len(text))], needles)
				}
			}
		})
	}
}
