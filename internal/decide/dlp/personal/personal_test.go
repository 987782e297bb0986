package personal_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
)

// TestEveryRule: each rule finds its own, and has an example here.
func TestEveryRule(t *testing.T) {
	set := dlp.NewSet(personal.Rules()...)
	seen := map[string]bool{}
	for _, c := range []struct{ name, value string }{
		{"email", "ada.lovelace+x@mail.host.org"},
		{"payment-card", "4242424242424242"},
		{"payment-card", "4242 4242 4242 4242"},
		{"payment-card", "5555-5555-5555-4444"},
		{"payment-card", "3782 822463 10005"},
		{"iban", "DE02120300000000202051"},
		{"iban", "DE02 1203 0000 0000 2020 51"},
		{"phone", "+49 30 901820 00"},
		{"phone", "+1 (415) 555-2671"},
		{"us-social-security-number", "536-22-8726"},
	} {
		seen[c.name] = true
		for _, around := range []struct{ before, after string }{{"", ""}, {"to ", ", and"}, {"(", ")"}, {`"`, `"`}, {"\n", "\n"}} {
			masked, found := set.Text(around.before+c.value+around.after, dlp.Plan{Personal: dlp.Report})
			if want := around.before + strings.Repeat("*", len(c.value)) + around.after; len(found) != 1 || found[0].Rule != c.name || found[0].Class != dlp.Personal || masked != want {
				t.Errorf("%s %q: %q, %+v", c.name, around.before+c.value+around.after, masked, found)
			}
		}
	}
	for _, name := range set.Rules() {
		if !seen[name] {
			t.Errorf("%s has no example", name)
		}
	}
}

// TestNotQuite: what looks like personal data and is none.
func TestNotQuite(t *testing.T) {
	set := dlp.NewSet(personal.Rules()...)
	for _, text := range []string{
		"git@host.org:a/b", "no-reply@host.org", "somebody@a.example", "x@1.2.3", "name@18.2.0-beta.rc", "@scope/name", "https://u:p@host.org/", "pkg@npm:other@1.0.0",
		"4242424242424241", "a4242424242424242", "42424242424242420000", "4242424242424242f", "0000000000000000", "4242 4242-4242 4242", "9999999999999995",
		"DE02120300000000202052", "GB82WEST12345698765432", "XX02120300000000202051",
		"+1234567890123", "+00:00", "+1.2.3", "++ 12 34 56 78 90", "2026-01-02",
		"536-22-87261", "000-22-8726", "536228726",
	} {
		if _, found := set.Text(text, dlp.Plan{Personal: dlp.Report}); len(found) != 0 {
			t.Errorf("%q: %+v", text, found)
		}
	}
}
