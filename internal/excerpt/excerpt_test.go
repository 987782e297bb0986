package excerpt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "ab..."},
		{"abcdef", 3, "..."},
		{"abcdef", 2, ".."},
		{"abcdef", 0, ""},
		{"äöüäöü", 8, "äö..."}, // two bytes each: the fifth byte is half of one
	} {
		if got := excerpt.Of(tt.text, tt.most); got != tt.want {
			t.Errorf("Of(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

// Whatever the text, the excerpt keeps to its bytes, is of that text, and is as valid.
func TestOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		most := rapid.IntRange(0, 40).Draw(rt, "most")
		got := excerpt.Of(text, most)
		if len(got) > most || !utf8.ValidString(got) {
			rt.Fatalf("Of(%q, %d) = %q", text, most, got)
		}
		if got != text && !strings.HasPrefix(text, strings.TrimRight(got, ".")) {
			rt.Fatalf("Of(%q, %d) = %q, which is not its beginning", text, most, got)
		}
	})
}
