package refusal_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/refusal"
)

// TestText: a paragraph of lines that nobody else's text can add to, draw over or turn
// around.
func TestText(t *testing.T) {
	const hostile = "a\x1b[2J\nb\u202ec\u2028d\u009be"
	text := refusal.Text([]refusal.Refusal{{
		Package: pkgref.Ref{Ecosystem: "python", Name: hostile, Version: hostile}, File: hostile, Outcome: hostile, Rule: hostile,
		Reason: hostile, RequestID: hostile, Suggest: "x:\n  " + hostile, Count: 2, Alarm: true,
	}})
	if lines := strings.Count(text, "\n"); lines != 8 || !strings.HasPrefix(text, "ALARM  00:00:00Z  a\\x1b[2J\\nb\\u202ec\\u2028d\\u009be: python ") {
		t.Errorf("%d lines:\n%s", lines, text)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%q is in %q", text[i:i+1], text)
	}
}
