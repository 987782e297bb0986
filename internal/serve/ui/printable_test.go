package ui

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                               "",
		"plain text, ünïcode, 日本":        "plain text, ünïcode, 日本",
		"\x1b]52;c;aGk=\x07":             `\x1b]52;c;aGk=\x07`,
		"a\nb\r\tc\x00":                  `a\nb\r\tc\x00`,
		"\u009b31m \u2028 \u202e \u200b": `\u009b31m \u2028 \u202e \u200b`,
		"\x9b \xff":                      `\x9b \xff`,
		"\U000e0041":                     `\U000e0041`,
		"\x7f":                           `\x7f`,
		"\ufffd":                         "\ufffd",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
	if got := PrintableText("a\n\tb\x1b"); got != "a\n\tb\\x1b" {
		t.Errorf("PrintableText = %q", got)
	}
}

// FuzzPrintable holds both functions to their promise, and the one for JSON to
// changing nothing of the meaning.
func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"", "a\x1b[2J", "\u202e", "\xff\xfe", "\U000e0041\u009b", "<&>\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Printable(s), PrintableText(s)} {
			if !utf8.ValidString(got) || strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(got), text.Hostile) {
				t.Fatalf("%q became %q", s, got)
			}
		}
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		shown := printableJSON(data)
		if strings.ContainsFunc(shown, text.Hostile) {
			t.Fatalf("%q became %q", data, shown)
		}
		var before, after string
		if json.Unmarshal(data, &before) != nil || json.Unmarshal([]byte(shown), &after) != nil || before != after {
			t.Fatalf("%q became %q: %q, %q", data, shown, before, after)
		}
	})
}
