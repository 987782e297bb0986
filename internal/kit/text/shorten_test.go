package text_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		content string
		most    int
		want    string
	}{
		{"", 0, ""},
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "ab..."},
		{"abcdef", 3, "..."},
		{"abcdef", 2, ".."},
		{"abcdef", 0, ""},
		{"äöüäöü", 8, "äö..."}, // two bytes each: the fifth byte is half of one
	} {
		if got := text.Shorten(tt.content, tt.most); got != tt.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", tt.content, tt.most, got, tt.want)
		}
	}
}

// TestSeal: what is cut says how long it was and which text, whatever the difference is.
func TestSeal(t *testing.T) {
	t.Parallel()
	if got := text.Seal("abc", 3); got != "abc" {
		t.Errorf("what has room is %q", got)
	}
	if got, want := text.Seal("test", 3), "... [4 bytes, sha256 9f86d081884c7d659a2feaa0c55ad015]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := text.Seal(strings.Repeat("x", 400), 300); len(got) != 300 || !strings.HasPrefix(got, "xxx") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	rapid.Check(t, func(rt *rapid.T) {
		a := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(rt, "text")
		b := slices.Clone(a)
		if len(b) == 0 {
			return
		}
		b[rapid.IntRange(0, len(b)-1).Draw(rt, "place")] ^= rapid.Byte().Filter(func(x byte) bool { return x != 0 }).Draw(rt, "bits")
		one, other := text.Seal(string(a), 100), text.Seal(string(b), 100)
		if one == other || !utf8.ValidString(one) || len(one) > 170 {
			rt.Fatalf("%q and %q are %q and %q", a, b, one, other)
		}
	})
}

// TestDigest: of a list, whatever its texts could be joined to.
func TestDigest(t *testing.T) {
	t.Parallel()
	seen := map[string][]string{}
	for _, list := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"1:a1:b"}} {
		d := text.DigestList(list)
		if other, is := seen[d]; is || len(d) != 32 {
			t.Errorf("%q and %q have the digest %q", list, other, d)
		}
		seen[d] = list
	}
}

// Whatever the text, the excerpt keeps to its bytes, is of that text, and is as valid.
func TestOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		content := rapid.String().Draw(rt, "text")
		most := rapid.IntRange(0, 40).Draw(rt, "most")
		got := text.Shorten(content, most)
		if len(got) > most || !utf8.ValidString(got) {
			rt.Fatalf("Shorten(%q, %d) = %q", content, most, got)
		}
		if got != content && !strings.HasPrefix(content, strings.TrimRight(got, ".")) {
			rt.Fatalf("Shorten(%q, %d) = %q, which is not its beginning", content, most, got)
		}
	})
}
