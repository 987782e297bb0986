package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

const token = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"

// escaped writes each byte of a text by a format.
func escaped(format, text string) string {
	var b strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&b, format, text[i])
	}
	return b.String()
}

// writings are how a token may be written in what comes on record.
func writings() map[string]string {
	return map[string]string{
		"plain":                token,
		"a letter of a URL":    "glpat%2D" + token[6:],
		"a URL":                escaped("%%%02x", token),
		"a URL twice":          url.QueryEscape(escaped("%%%02X", token)),
		"JSON":                 escaped(`\\u%04x`, token),
		"a program":            escaped(`\\x%02x`, token),
		"markup":               escaped("&#%d;", token),
		"markup, hexadecimal":  escaped("&#x%x;", token),
		"base64":               base64.StdEncoding.EncodeToString([]byte("user:" + token)),
		"base64, not aligned":  "A" + base64.RawURLEncoding.EncodeToString([]byte("x"+token+"yz")),
		"hexadecimal":          hex.EncodeToString([]byte(token)),
		"base64 of a URL's":    base64.StdEncoding.EncodeToString([]byte(escaped("%%%02x", token))),
		"a URL of base64":      url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("xy" + token))),
		"base64 of base64":     base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(token)))),
		"between other things": "GET /x?a=" + escaped("%%%02x", token) + "&b=1",
	}
}

// TestEachWriting is masked, and nothing else of the text is.
func TestEachWriting(t *testing.T) {
	t.Parallel()
	for name, written := range writings() {
		for _, around := range []string{"%s", "POST /a/%s/b", `{"a":"%s"}`} {
			text := fmt.Sprintf(around, written)
			got := redact.Text(text)
			if len(got) != len(text) || strings.Count(got, "*") < len(token)-8 {
				t.Errorf("%s: %s", name, got)
			}
			if strings.HasPrefix(around, "POST") && (!strings.HasPrefix(got, "POST /a/") || !strings.HasSuffix(got, "/b")) {
				t.Errorf("%s: what is beside it: %s", name, got)
			}
		}
	}
	for _, plain := range []string{ // the control
		"", "GET /simple/requests/", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", `{"a":"\u0041%41&#65;"}`,
		"sha512-" + strings.Repeat("qUqP5cyxm6YcTAhz05Hph5gvu9M", 3), "v0.0.0-20260102030405-0123456789ab",
	} {
		if got := redact.Text(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}

// TestACutShowsNoPart: wherever a text is cut, in each writing.
func TestACutShowsNoPart(t *testing.T) {
	t.Parallel()
	all := writings()
	delete(all, "between other things") // which begins with something else
	for name, written := range all {
		for most := 40; most < 60+len(written); most += 3 {
			got := redact.Cut("GET /"+strings.Repeat("x", 35)+"/"+written+strings.Repeat("/y", 300), most)
			if len(got) > most {
				t.Fatalf("%s: %d bytes of %d", name, len(got), most)
			}
			if shown := common(got[min(41, len(got)):], written); shown > 8 {
				t.Errorf("%s, cut at %d: %d letters of it are shown: %s", name, most, shown, got)
				break
			}
		}
	}
	if got := redact.Cut("short", 5); got != "short" {
		t.Error(got)
	}
}

// common is with how many letters both begin.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// TestASealedCutShowsNoPart: the same of a text that says how much is cut.
func TestASealedCutShowsNoPart(t *testing.T) {
	t.Parallel()
	for most := 100; most < 160; most += 3 {
		got := redact.Sealed("POST /"+strings.Repeat("x", 35)+"/"+token+strings.Repeat("/y", 300), most)
		if at := strings.Index(got, token[:8]); at >= 0 || !strings.Contains(got, "sha256") {
			t.Errorf("cut at %d: %s", most, got)
		}
	}
	if got := redact.Sealed("short", 5); got != "short" {
		t.Error(got)
	}
}
