package text_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// TestNames: no name of random bytes makes more lines than a plain one, by whatever a reader takes
// for a line's end, and no two names are written alike.
func TestNames(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(34, 3))
	pieces := []string{"a", `\`, "n", "x", "u", "0", "\n", "\r", "\v", "\f", "\t", "\x85", "\u0085", "\u2028", "\u2029", "\u202e", "\u200b", "\xff", "\xc2", "\ufffd", "\x1b", "\x00", "\U000e0041", "é"}
	seen := map[string]string{}
	for range 10_000 {
		var name string
		for range 1 + random.IntN(8) {
			name += pieces[random.IntN(len(pieces))]
		}
		got := text.Name(name)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, text.Hostile) || text.Line(got) != got {
			t.Fatalf("%q is shown as %q", name, got)
		}
		if other, is := seen[got]; is && other != name {
			t.Fatalf("%q and %q are both shown as %s", name, other, got)
		}
		seen[got] = name
		if back, err := strconv.Unquote(`"` + got + `"`); err != nil || back != name {
			t.Fatalf("%q is shown as %s, which reads as %q: %v", name, got, back, err)
		}
	}
	if text.Name("a\nb") == text.Name(`a\nb`) {
		t.Error("a line's end looks like a backslash and an n")
	}
}
