package exchange

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// eachLetter writes each byte of a text by itself.
func eachLetter(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, format, s[i])
		}
		return b.String()
	}
}

func inJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func asMail(s string) string {
	var b bytes.Buffer
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(s)) // to memory
	_ = w.Close()
	return b.String()
}

// cutWritings are ways in which hosts write a text, of each kind of escape one.
func cutWritings() map[string]func(string) string {
	return map[string]func(string) string{
		"as it is": func(s string) string { return s }, "URL, all": eachLetter("%%%02x"), "URL": url.QueryEscape, "JSON, all": eachLetter(`\u%04x`), "JSON": inJSON,
		"braces": eachLetter(`\u{%x}`), "Perl's braces": eachLetter(`\x{%x}`), "octal in braces": eachLetter(`\o{%o}`), "numbers in braces": eachLetter(`\N{U+%x}`), "hexadecimal": eachLetter(`\x%02x`),
		"octal": eachLetter(`\%03o`), "style sheet": eachLetter(`\%x `), "style sheet, six": eachLetter(`\%06x`), "directory": eachLetter(`\%02x`),
		"markup": html.EscapeString, "markup, all": eachLetter("&#%d;"), "markup, hexadecimal": eachLetter("&#x%x;"), "quoted-printable, all": eachLetter("=%02X"),
		"base64": encode, "digits": func(s string) string { return hex.EncodeToString([]byte(s)) },
		"full width": func(s string) string {
			return strings.Map(func(c rune) rune { return c - '!' + 0xff01 }, s)
		},
	}
}

// masksAll tells whether all that is masked in a text that comes whole is masked in another form of it, but for blanks: of
// a blank behind an escape, which belongs to it, the half may be let go.
func masksAll(got, whole, text string) bool {
	for i := range min(len(got), len(whole)) {
		if got[i] != whole[i] && !isBlank(text[i]) {
			return false
		}
	}
	return len(got) == len(whole)
}

// TestEachWritingIsFoundWhereverItIsCut: what is masked in a text that comes whole is masked wherever that is cut, and
// what is an alarm on its way out is one there: in all writings, with each of the things that stand unseen within one.
func TestEachWritingIsFoundWhereverItIsCut(t *testing.T) {
	t.Parallel()
	within := []string{"", "=\r\n", "=\n", "\x1b[0m", "\x1b[>4;1m", "\x1b[1'}", "\u200b", "\u00ad", "\x00", "\r\n", "\\\n", "\x1b", "%e2%80%8b", "&#8203;", `\u200b`, "&shy;", `\`, `\u001b[>1m`, "&#27;[,m"}
	for _, secret := range []string{"sk-Zq81xKf0", "a&b/c<d+01"} {
		sought := seek(secret)
		for name, write := range cutWritings() {
			t.Run(name+" of "+secret, func(t *testing.T) {
				t.Parallel()
				written := write(secret)
				for _, unseen := range within {
					found := 0
					for at := 0; at <= len(written) && (at == 0 || unseen != ""); at++ {
						text := "yy " + written[:at] + unseen + written[at:] + " zz"
						whole, of := inCuts(&scan{needles: sought}, text)
						if of == "" {
							continue
						}
						found++
						for cut := max(1, at-3); cut < len(text) && (cut < at+12 || unseen == ""); cut++ {
							if got, _ := inCuts(&scan{needles: sought}, text, cut); !masksAll(got, whole, text) {
								t.Fatalf("%q|%q: %q, and whole %q", text[:cut], text[cut:], got, whole)
							}
							if _, of := inCuts(&scan{needles: sought, known: true}, text, cut); of == "" {
								t.Fatalf("on its way out: %q|%q is not found", text[:cut], text[cut:])
							}
						}
					}
					if unseen == "" && found == 0 {
						t.Error("the control: it is not found whole")
					}
				}
			})
		}
	}
}

// TestASoftLineEndAtTheBorderOfAPiece: an answer comes at once, or in two reads, and a line's end of quoted-printable
// in it stands within an escape, and across the border of what is looked through at a time. The control: the border is
// one byte before it.
func TestASoftLineEndAtTheBorderOfAPiece(t *testing.T) {
	t.Parallel()
	const secret = "key<0123&xyz"
	for name, write := range cutWritings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := write(secret)
			for at := range len(written) {
				mail := "auth: " + written[:at] + "=\r\n" + written[at:] + "\r\n"
				want, of := inCuts(&scan{needles: seek(secret)}, mail)
				if of == "" {
					continue
				}
				for _, border := range []int{0, 1, 2} {
					cut := len("auth: ") + at + border
					for _, head := range []string{"", "Subject: " + strings.Repeat("z", pieceSize-cut-len("Subject: \r\n")) + "\r\n"} {
						parts := []io.Reader{strings.NewReader(head + mail)}
						if head == "" {
							parts = []io.Reader{strings.NewReader(mail[:cut]), strings.NewReader(mail[cut:])}
						}
						a, err := ask(t, toItsHost(&lender{value: secret}), form{kind: "message/rfc822"}, io.NopCloser(io.MultiReader(parts...)))
						if err != nil {
							t.Fatal(err)
						}
						got, err := io.ReadAll(struct{ io.Reader }{a.Body})
						if err != nil || string(got) != head+want {
							t.Fatalf("the border at %d, in reads %v: %q, %v", cut, head == "", got[len(head):], err)
						}
					}
				}
			}
		})
	}
}

// TestAMailWithASecretAtTheBorderOfAPiece is as Go's own packages write it, so that a client reads it back. So is a
// placeholder in a mail on its way out.
func TestAMailWithASecretAtTheBorderOfAPiece(t *testing.T) {
	t.Parallel()
	const secret = "key<0123456789>abcdef&xyz"
	for pad := 30; pad < 66; pad++ {
		mail := asMail(strings.Repeat("y", pad) + `{"auth":` + inJSON(secret) + "}")
		for _, more := range []int{0, 1} { // of which the latter is the control
			head := "Subject: " + strings.Repeat("z", pieceSize-strings.Index(mail, "=\r\n")-1-len("Subject: \r\n\r\n")+more) + "\r\n\r\n"
			a, err := ask(t, toItsHost(&lender{value: secret}), form{kind: "message/rfc822"}, io.NopCloser(strings.NewReader(head+mail)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(a.Body)
			if err != nil {
				t.Fatal(err)
			}
			read, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(got[len(head):])))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(read), inJSON(secret)) {
				t.Errorf("%d, %d: a client reads %q", pad, more, read)
			}
			l := &lender{value: guessed}
			x := New([]Credential{swapping(Header)}, map[string]string{"one": secret}, l)
			r := post(t, "/", "message/rfc822", head+mail)
			if err := x.Outgoing(r); err != nil {
				t.Fatal(err)
			}
			if sent, err := io.ReadAll(r.Body); err == nil || len(l.told) != 1 {
				t.Errorf("%d, %d: the placeholder leaves: %q, %v", pad, more, sent[len(head):], l.told)
			}
		}
	}
}

// someLetters has about one letter of three be written in a way.
func someLetters(r *rand.Rand, text, format string) string {
	var b strings.Builder
	for _, c := range text {
		if r.IntN(3) == 0 && c < 0x80 {
			fmt.Fprintf(&b, format, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// writeRandomly writes a text up to three times, each time in another way.
func writeRandomly(r *rand.Rand, text string) (written, how string) {
	formats := []string{"%%%02x", `\u%04x`, `\x%02x`, "&#%d;", "&#x%x;", `\%03o`, "%%u%04x", "=%02X", "%c\u200b", "%c\x00", "\x1b[1m%c", "\x1b[>1m%c", "%c&shy;", `\%x `, `\\%c`, `\u{%x}`}
	wholes := map[string]func(string) string{
		"html": html.EscapeString, "URL": url.QueryEscape, "JSON": inJSON, "base64": encode, "hex": func(s string) string { return hex.EncodeToString([]byte(s)) },
		"base64 for URLs": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
		"lines":           func(s string) string { return inLines(s, 20) },
		"soft lines":      func(s string) string { return strings.ReplaceAll(inLines(s, 7), "\n", "=\r\n") },
	}
	names := slices.Sorted(maps.Keys(wholes))
	for range 1 + r.IntN(3) {
		if r.IntN(2) == 0 {
			format := formats[r.IntN(len(formats))]
			text, how = someLetters(r, text, format), how+" > "+format
		} else {
			name := names[r.IntN(len(names))]
			text, how = wholes[name](text), how+" > "+name
		}
	}
	return text, how
}

// TestRandomWritingsAreFoundWhereverTheyAreCut is TestEachWritingIsFoundWhereverItIsCut of writings in one another.
func TestRandomWritingsAreFoundWhereverTheyAreCut(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"sk-Zq81xKf0Tw", "a&b/c<d+01=zz", `p%41q"w'e\r12`, "wJalr/K7MD+xx=="} {
		t.Run(secret, func(t *testing.T) {
			t.Parallel()
			r, sought, found := rand.New(rand.NewPCG(7, uint64(len(secret)))), seek(secret), 0
			for range 2_000 {
				text, how := writeRandomly(r, secret)
				text = "yy " + text + " zz"
				whole, of := inCuts(&scan{needles: sought}, text)
				if of == "" {
					continue
				}
				found++
				for range 12 {
					cuts := []int{1 + r.IntN(len(text)-1), 1 + r.IntN(len(text)-1)}
					slices.Sort(cuts)
					if got, _ := inCuts(&scan{needles: sought}, text, cuts...); got != whole {
						t.Errorf("%s: %q|%q|%q: %q, and whole %q", how, text[:cuts[0]], text[cuts[0]:cuts[1]], text[cuts[1]:], got, whole)
					}
				}
			}
			if found < 1_000 {
				t.Errorf("the control: %d are found whole", found)
			}
		})
	}
}

// TestAnEscapeWithinAnEscapeIsFoundWhereverItIsCut: a digit of an escape is escaped itself, in another dialect or in the same.
func TestAnEscapeWithinAnEscapeIsFoundWhereverItIsCut(t *testing.T) {
	t.Parallel()
	const secret = "sk-Zq81xKf0"
	sought, found := seek(secret), map[string]int{}
	inner := []string{`\%x `, `\%06x`, `\%03o`, `\%o`, `\%02x`, "=%02X", `\u%04x`, "%%%02x", "&#%d;", "%c\x00", "%c\u200b"}
	for _, outer := range []string{`\u%04x`, `\x%02x`, `\%03o`, "%%%02x", "&#x%x;", "&#%d;", `\u{%x}`} {
		written := eachLetter(outer)(secret)
		for _, format := range inner {
			for at := range len(written) {
				if digitValue(written[at]) < 0 {
					continue
				}
				text := "yy " + written[:at] + fmt.Sprintf(format, written[at]) + written[at+1:] + " zz"
				whole, of := inCuts(&scan{needles: sought}, text)
				if of == "" || whole[3] != mask || whole[len(whole)-4] != mask {
					continue
				}
				found[format]++
				for cut := max(1, at-6); cut < min(len(text), at+16); cut++ {
					if got, _ := inCuts(&scan{needles: sought}, text, cut); !masksAll(got, whole, text) {
						t.Fatalf("%q|%q: %q, and whole %q", text[:cut], text[cut:], got, whole)
					}
					if _, of := inCuts(&scan{needles: sought, known: true}, text, cut); of == "" {
						t.Fatalf("on its way out: %q|%q is not found", text[:cut], text[cut:])
					}
				}
			}
		}
	}
	if len(found) < 8 {
		t.Errorf("the control: found whole are %v", found)
	}
}

// TestWhatIsReadTwiceIsMaskedWhole: cut in pieces, a text is found up to an end of its own and goes on behind that in another reading; and a character
// that nobody sees is written in escapes and in bytes, of which the first piece ends near one.
func TestWhatIsReadTwiceIsMaskedWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		secret string
		pieces []string
	}{
		{`p%41q"w'e\r12`, []string{`yy &#x3d;&#x37;0&#x25;4&#x31;&#x71;"&#x77;&#x27;&`, `#x65;\=72`, `1&#x32; zz`}},
		{"wJalr/K7MD+xx==", []string{"y", "y \"w\\112\\342\x80\\213\\141lr\\057\\1137", "MD+\u200b\\170\u200bx\\075=\" zz"}},
		{"sk-Zq81xKf0Tw", []string{"yy sk\\342\\200\x8b-", "\xe2\\200\x8bZ\\161\u200b\\0701\\170Kf0Tw zz"}},
	} {
		text, cuts := strings.Join(c.pieces, ""), []int(nil)
		for _, piece := range c.pieces[:len(c.pieces)-1] {
			cuts = append(cuts, len(piece))
			if n := len(cuts); n > 1 {
				cuts[n-1] += cuts[n-2]
			}
		}
		whole, of := inCuts(&scan{needles: seek(c.secret)}, text)
		if got, _ := inCuts(&scan{needles: seek(c.secret)}, text, cuts...); of == "" || !masksAll(got, whole, text) {
			t.Errorf("%q: %q, and whole %q", c.pieces, got, whole)
		}
	}
}
