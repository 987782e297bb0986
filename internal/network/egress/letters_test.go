package egress_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/scanning"
)

// TestBodiesInLettersThatNobodyNames: a body in pieces, in UTF-16, UTF-32 or UTF-7 is looked into
// although no header says that it is, by deny_patterns and by secret_scanning, also where it has no
// length that is known before. The controls: as it stands the word is found by both, and a harmless one
// arrives in each of these forms.
func TestBodiesInLettersThatNobodyNames(t *testing.T) {
	const word, harmless = "glpat-" + "aB3dE6gH9kaB3dE6gH9k", "harmless-word-of-its-size-"
	const patterns = "network_allowlist:\n  - { host: api.example, paths: [\"/good\"], max_body: 4000000, deny_patterns: [\"(?i)glpat-[a-z0-9]{20}\"] }\n"
	const plain = "network_allowlist:\n  - { host: api.example, paths: [\"/good\"] }\n"
	forms := func(word string) map[string]worded {
		half := len(word) / 2
		wider := func(text string) string {
			var b strings.Builder
			for i := range len(text) {
				b.WriteString("\x00\x00\x00" + text[i:i+1])
			}
			return b.String()
		}
		return map[string]worded{
			"as it stands":                   {body: word, kind: "text/plain"},
			"UTF-16 with a mark":             {body: "\xff\xfe" + wide(word), kind: "text/plain"},
			"UTF-16 without":                 {body: wide(word), kind: "text/plain"},
			"UTF-16 of JSON":                 {body: wide(`{"a":"` + word + `"}`), kind: "application/json"},
			"UTF-32":                         {body: wider(word), kind: "text/plain"},
			"UTF-7":                          {body: "+" + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte{0, word[0]}), "=") + "-" + word[1:], kind: "text/plain"},
			"UTF-16 behind a text":           {body: strings.Repeat("a text ", 20_000) + wide(word), kind: "text/plain"},
			"UTF-16 from an odd byte on":     {body: "a" + wide(word), kind: "application/octet-stream"},
			"UTF-16 in a long body":          {body: wide(strings.Repeat("a text ", 270_000) + word), kind: "text/plain"},
			"UTF-7 in a long form":           {body: "a=" + strings.Repeat("b+", 1_900_000) + "&c=+" + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll("\x00"+strings.Join(strings.Split(word, ""), "\x00"), " ", ""))), "=") + "-", kind: "application/x-www-form-urlencoded"},
			"UTF-7, a letter by itself":      {body: word[:5] + "+" + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte{0, word[5]}), "=") + "-" + word[6:], kind: "text/plain"},
			"pieces that no header tells of": {method: "PUT", body: hexLength(word[:half]) + "\r\n" + word[:half] + "\r\n" + hexLength(word[half:]) + "\r\n" + word[half:] + "\r\n0\r\n\r\n"},
		}
	}
	checks := map[string]func(t *testing.T, got *seen) *end{
		"deny_patterns": func(t *testing.T, got *seen) *end {
			t.Helper()
			return endUnder(t, patterns, wholeOnly{got}, "api.example")
		},
		"secret_scanning": func(t *testing.T, got *seen) *end {
			t.Helper()
			e := endUnder(t, plain, wholeOnly{got}, "api.example")
			sees, err := scanning.Exchanges{Door: &scanDoor{plan: dlp.Plan{Secrets: dlp.Block}}, Set: func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }}.
				Exchange(context.Background(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
			if err != nil {
				t.Fatal(err)
			}
			e.door.exchange = sees
			return e
		},
	}
	for check, at := range checks {
		t.Run(check, func(t *testing.T) {
			got := &seen{}
			c := at(t, got).client(t, false)
			for form, w := range forms(word) {
				if w.sends(t, c, got) {
					t.Errorf("%s: it arrives, of all %.100q", form, got.all()[len(got.all())-1])
				}
			}
			for form, w := range forms(harmless) {
				if !w.sends(t, c, got) {
					t.Errorf("the control: %s: a harmless one does not arrive", form)
				}
			}
			for form, w := range forms(word) {
				if w.trailer = map[string]string{"X-A": "a"}; w.sends(t, c, got) {
					t.Errorf("%s, of unknown length: it arrives, of all %.100q", form, got.all()[len(got.all())-1])
				}
			}
		})
	}
}
