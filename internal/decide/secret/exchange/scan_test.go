package exchange

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// seek are the needles of one secret, "one".
func seek(texts ...string) *needles { return newNeedles(map[string][]string{"one": texts}) }

// TestScanAcrossBorders: however a stream is cut, no letter of a needle comes through, as many bytes
// come out as went in, and all others are as they were.
func TestScanAcrossBorders(t *testing.T) {
	needle := "sk-secret/value+1"
	forms := formsOf(needle)
	sought := seek(needle)
	text := strings.Join(forms, " , ") + " sk-sk-secret/value+1sk-secret/value+1 sk-secret/valu sk-"
	want := sought.masked(text)
	if !strings.HasSuffix(want, " sk-"+strings.Repeat("x", 2*len(needle))+" sk-secret/valu sk-") || sought.findInText(want) != "" {
		t.Fatal(want)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{1, 2, 5, 30, 1_000} {
		for range 200 {
			s, out := scan{needles: sought}, ""
			for rest := text; rest != ""; {
				n := min(1+r.IntN(most), len(rest))
				part, _ := s.takeMore([]byte(rest[:n]), n == len(rest))
				out, rest = out+string(part), rest[n:]
			}
			if out != want {
				t.Fatalf("%q", out)
			}
		}
	}
}

// TestOfKnownNeedlesTheBeginningIsHeld: of a stream whose reader knows the needles, what can't be one is passed on
// at once, and so is so short a beginning that it is likely something else.
func TestOfKnownNeedlesTheBeginningIsHeld(t *testing.T) {
	s := scan{needles: seek("sk-secret-value"), known: true}
	for _, c := range []struct{ in, out string }{
		{"data: hello\n\n", "data: hello\n\n"},
		{"data: sk-", "data: sk-"},
		{"s", ""},
		{"ecret", ""},
		{"s \n", "secrets \n"},
		{"sk-secret", ""},
		{"-value!", "xxxxxxxxxxxxxxx!"},
		{"sk-", "sk-"},
		{"secret-value!", "xxxxxxxxxxxx!"},
	} {
		if out, _ := s.takeMore([]byte(c.in), false); string(out) != c.out {
			t.Errorf("%q: %q, not %q", c.in, out, c.out)
		}
	}
	if out, _ := s.takeMore([]byte("sk-secr"), false); len(out) != 0 {
		t.Errorf("%q", out)
	}
	if out, _ := s.takeMore(nil, true); string(out) != "sk-secr" {
		t.Errorf("at the end: %q", out)
	}
}

func containsAny(needles []string, text string) bool {
	return slices.ContainsFunc(needles, func(n string) bool { return strings.Contains(text, n) })
}

func TestForms(t *testing.T) {
	forms := formsOf(`a<b>"c"/d é+?`)
	for _, want := range []string{
		`a<b>"c"/d é+?`, `a%3Cb%3E%22c%22%2Fd+%C3%A9%2B%3F`, `a%3cb%3e%22c%22%2fd+%c3%a9%2b%3f`,
		`a<b>\"c\"/d é+?`, `a<b>\"c\"\/d é+?`, `a\u003cb\u003e\"c\"/d é+?`,
	} {
		if !containsAny([]string{want}, strings.Join(forms, "\n")) {
			t.Errorf("%q is not a form", want)
		}
	}
	for _, before := range []string{"", "a", "ab", "abc", "user:"} {
		for _, after := range []string{"", "z", "zz", "zzz"} {
			encoded := encode(before + "\xffthe secret\xfe" + after)
			if !containsAny(formsOf("\xffthe secret\xfe"), encoded) {
				t.Errorf("%q is not found in %s", before+after, encoded)
			}
		}
	}
}

func BenchmarkScan(b *testing.B) {
	random := make([]byte, 24<<10)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(random)
	var digests []byte // as a package's page at a registry has them
	for at := 0; at+84 <= len(random); at += 84 {
		digests = fmt.Appendf(digests, "{\"integrity\":\"sha512-%s\",\"shasum\":\"%x\"},\n", base64.StdEncoding.EncodeToString(random[at:at+64]), random[at+64:at+84])
	}
	for name, text := range map[string][]byte{
		"events":  bytes.Repeat([]byte("data: {\"delta\":\"some words of a model\"}\n\n"), 800),
		"prose":   bytes.Repeat([]byte("It is a truth universally acknowledged, that a single man in possession of a good fortune "), 400),
		"binary":  random,
		"base64":  []byte(encode(string(random))),
		"digests": digests,
		"HTML":    bytes.Repeat([]byte("<a href=\"/some/path?a=1&amp;b=2\">it&#39;s</a>\n"), 800),
	} {
		b.Run(name, func(b *testing.B) {
			s := scan{needles: seek("sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKl")}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.takeMore(text, false)
			}
		})
	}
}
