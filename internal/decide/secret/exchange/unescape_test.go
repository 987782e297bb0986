package exchange

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// escapes are ways to write a text, none of which has it as it is.
func escapes() map[string]func(string) string {
	each := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for i := range len(s) {
				fmt.Fprintf(&b, format, s[i])
			}
			return b.String()
		}
	}
	some := func(s string) string { // a mix, as no encoder would write it
		var b strings.Builder
		for i := range len(s) {
			switch i % 4 {
			case 0:
				b.WriteByte(s[i])
			case 1:
				fmt.Fprintf(&b, "%%%02x", s[i])
			case 2:
				fmt.Fprintf(&b, `\u%04X`, s[i])
			case 3:
				fmt.Fprintf(&b, "&#%d;", s[i])
			}
		}
		return b.String()
	}
	return map[string]func(string) string{
		"JSON": each(`\u%04x`), "JSON, capitals": each(`\u%04X`), "JSON in JSON": each(`\\u%04x`), "JSON in JSON in JSON": each(`\\\\u%04x`),
		"percent": each("%%%02X"), "percent, small": each("%%%02x"), "percent twice": each("%%25%02X"), "JSON in a form": each("%%5Cu%04x"),
		"hexadecimal": each(`\x%02x`), "markup": each("&#%d;"), "markup, hexadecimal": each("&#x%X;"), "markup, padded": each("&#%06d;"), "a mix": some,
		"base64, escaped": func(s string) string {
			return strings.NewReplacer("/", `\/`, "+", "%2B", "a", `\u0061`, "s", "%73").Replace(encode("me:" + s))
		},
	}
}

// TestEscapedPlaceholders: it is an alarm however its letters are escaped, in the head, the
// body and behind it, wherever what is read at a time is cut.
func TestEscapedPlaceholders(t *testing.T) {
	for name, write := range escapes() {
		text := write(fake)
		if strings.Contains(text, fake) {
			t.Fatalf("%s: %q is no escape", name, text)
		}
		for place, r := range map[string]*http.Request{
			"header X-A": func() *http.Request { r := post(t, "/", "", ""); r.Header.Set("X-A", "a="+text+";"); return r }(),
			"body":       post(t, "/", "text/plain", strings.Repeat(`\ % & "`, 999)+text+"!"),
			"trailer": func() *http.Request {
				r := post(t, "/", "text/plain", "text")
				r.Trailer = http.Header{"X-End": {text}}
				return r
			}(),
		} {
			v := &vault{}
			err := New(nil, all(), v).Outgoing(r)
			if err == nil {
				r.Body = io.NopCloser(iotest.OneByteReader(r.Body))
				_, err = io.ReadAll(r.Body)
			}
			_, leaked := v.told()
			if refused, is := errors.AsType[*Refused](err); !is || !refused.Leak || len(leaked) != 1 || leaked[0] != "one in "+place {
				t.Errorf("%s: %v %q", name, err, leaked)
			}
		}
		for cut := 0; cut < len(text); cut += 1 + cut%2 {
			for _, pad := range []string{"", strings.Repeat("a", 900)} { // in a piece in which little is escaped
				v, r := &vault{}, post(t, "/", "text/plain", "")
				r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(pad+text[:cut]), strings.NewReader(text[cut:]+pad), strings.NewReader(pad))), -1
				if err := New(nil, all(), v).Outgoing(r); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadAll(r.Body); err == nil {
					t.Errorf("%s, cut at %d, with %d bytes around", name, cut, len(pad))
				}
			}
			v, r := &vault{}, post(t, "/", "text/plain", "")
			r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("before "+text[:cut]), strings.NewReader(text[cut:]+" after"))), -1
			if err := New(nil, all(), v).Outgoing(r); err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(r.Body); err == nil || strings.Contains(string(b), text) {
				t.Errorf("%s, cut at %d: %q, %v", name, cut, b, err)
			}
		}
	}
}

// TestUnescaped: what is no escape stays as it is.
func TestUnescaped(t *testing.T) {
	for text, want := range map[string]string{
		`a\u0041b%42&#67;&#x44;\x45\/`: "aAbBCDE/", `\\\u0041`: "A", `%u0041\101`: "AA", `&#43a&#x2b;&#x2Bg`: "+a++g",
		`&amp;&plus;&sol;&equals;&quot;&lt;&ampx&lt`:   `&+/="<&x<`,
		`\u00e9%C3%A9&eacute;\ud83d\ude00\ud83d!`:      "ééé😀\uFFFD!",
		`100% of "a\"" & &; &#; &#x; %4 %zz \u12 \q %`: `100% of "a"" & &; &#; &#x; %4 %zz \u12 \q %`,
		`&#9999999;&nosuch;&noname`:                    `&#9999999;&nosuch;&noname`,
		`\`:                                            `\`, `&`: `&`, `&#`: `&#`, "\\n\\t": "\n\t",
		strings.Repeat(`\`, 40): strings.Repeat(`\`, 40),
	} {
		if got := Unescape(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// TestAnEscapeIsNotWaitedFor: of no text more is kept than the longest escapes, one in
// another, and none of it is held back where beginnings are.
func TestAnEscapeIsNotWaitedFor(t *testing.T) {
	for _, text := range []string{`\`, "%", "&", "&#", "&#0", `\u`, `\\u00`, "%2", "%25", "&a", "a", "ab", "\n"} {
		s, in, out := scan{needles: seek("sk-secret-value"), known: true}, 0, 0
		for range 1_000 {
			in += len(text)
			given, _ := s.takeMore([]byte(text), false)
			if out += len(given); len(s.buf) > 3*maxEscape {
				t.Fatalf("%q: %d bytes are kept", text, len(s.buf))
			}
		}
		if out != in {
			t.Errorf("%q: %d of %d bytes came", text, out, in)
		}
	}
}

func BenchmarkOutgoing(b *testing.B) {
	text := strings.Repeat(`{"role": "user", "content": "some words\nof \"code\""}, `, 20_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r, err := http.NewRequest(http.MethodPost, "http://api.example/", strings.NewReader(text))
		if err != nil {
			b.Fatal(err)
		}
		if err := New(nil, all(), &vault{}).Outgoing(r); err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Fatal(err)
		}
	}
}
