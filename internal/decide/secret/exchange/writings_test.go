package exchange

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"
)

// writings are ways in which hosts write a text that are no encoding of its bytes one by one:
// other charsets, what is not seen between letters, and quotes.
func writings() map[string]func(string) string {
	wide := func(order binary.AppendByteOrder, mark bool) func(string) string {
		return func(s string) string {
			var b []byte
			if mark {
				b = order.AppendUint16(b, 0xfeff)
			}
			for _, unit := range utf16.Encode([]rune(s)) {
				b = order.AppendUint16(b, unit)
			}
			return string(b)
		}
	}
	wider := func(order binary.AppendByteOrder) func(string) string {
		return func(s string) string {
			var b []byte
			for _, c := range s {
				b = order.AppendUint32(b, uint32(c))
			}
			return string(b)
		}
	}
	each := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for _, c := range s {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
	}
	between := func(unseen string) func(string) string {
		return func(s string) string { return strings.Join(strings.SplitAfter(s, "a"), unseen) }
	}
	only := func(format, letters string) func(string) string { // some letters are written so
		return func(s string) string {
			var b strings.Builder
			for _, c := range s {
				if strings.ContainsRune(letters, c) {
					fmt.Fprintf(&b, format, c)
				} else {
					b.WriteRune(c)
				}
			}
			return b.String()
		}
	}
	names := map[byte]string{}
	for name, c := range characterNames {
		names[c] = name
	}
	named := func(s string) string {
		var b strings.Builder
		for _, c := range s {
			if name := names[byte(c)]; c < 0x80 && name != "" {
				b.WriteString(`\N{` + name + "}")
			} else {
				b.WriteRune(c)
			}
		}
		return b.String()
	}
	full := func(s string) string {
		return strings.Map(func(c rune) rune {
			if '!' <= c && c <= '~' {
				return c - '!' + 0xff01
			}
			return c
		}, s)
	}
	const special = `-_.:+/="`
	replaced := func(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }
	return map[string]func(string) string{
		"UTF-16LE": wide(binary.LittleEndian, false), "UTF-16BE": wide(binary.BigEndian, false), "UTF-16LE, marked": wide(binary.LittleEndian, true), "UTF-16BE, marked": wide(binary.BigEndian, true),
		"UTF-16, odd": func(s string) string { return "a" + wide(binary.LittleEndian, false)(s) },
		"base64 of UTF-16": func(s string) string {
			return base64.StdEncoding.EncodeToString([]byte(wide(binary.LittleEndian, false)(s)))
		},
		"JSON in UTF-16": func(s string) string {
			b, err := json.Marshal(s)
			if err != nil {
				return err.Error()
			}
			return wide(binary.BigEndian, false)(string(b))
		},
		"UTF-32LE": wider(binary.LittleEndian), "UTF-32BE": wider(binary.BigEndian),
		"Latin-1 of UTF-8": func(s string) string { return each("%c")(misread(s)) },
		"quoted-printable": func(s string) string {
			var b bytes.Buffer
			w := quotedprintable.NewWriter(&b)
			_, _ = w.Write([]byte(strings.Repeat("a ", 34) + s))
			_ = w.Close()
			return b.String()
		},
		"soft line ends": between("=\r\n"), "soft hyphens": between("\u00ad"), "soft hyphens by name": between("&shy;"), "no width": between("\u200b"), "a mark": between("\ufeff"), "a line that goes on": between("\\\n"), "zero bytes": between("\x00"),
		"braces": each(`\u{%x}`), "Perl's braces": each(`\x{%x}`), "eight digits": each(`\U%08x`), "many zeros": each("&#%012d;"), "many zeros, hexadecimal": each("&#x%08X;"),
		"quoted-printable, all": each("=%02X"), "quoted-printable, small": each("=%02x"), "quoted-printable, some": only("=%02X", special+"aeiou"), "quoted-printable of markup": func(s string) string { return strings.ReplaceAll(only("&#x%X;", special)(s), "#", "=23") },
		"style sheet": each(`\%x `), "style sheet, six": each(`\%06x`), "style sheet, some": only(`\%x `, special), "style sheet in JSON": only(`\\%x `, special), "style sheet, lines": each("\\%x\n"), "style sheet, percent": only(`%%5C%x%%20`, special),
		"directory": each(`\%02x`), "directory, some": only(`\%02X`, special), "short octal": each(`\%o`), "short octal, some": only(`\%o`, "_.:+/"), "octal in braces": each(`\o{%o}`), "Perl's numbers": each(`\N{U+%04X}`), "names": named, "full width": full,
		"variation selectors": between("\ufe0f"), "Mongolian": between("\u180e"), "directions": between("\u202a"), "isolates": between("\u2068"), "joiners": between("\u034f"), "tags": between("\U000e0041"), "more selectors": between("\U000e0100"), "fillers": between("\u3164"), "Arabic marks": between("\u061c"),
		"controls": between("\x01"), "deleted": between("\x7f"), "colours": between("\x1b[1;31m"), "an escape": between("\x1b"), "selectors, escaped": between(`\ufe0f`), "selectors in markup": between("&#xFE0F;"), "many unseen": between("\u200b\u2060\ufe0f\x00"),
		"doubled quotes": replaced(`"`, `""`), "single doubled quotes": replaced("'", "''"), "quotes of a shell": replaced("'", `'\''`),
		"escapes of a shell": replaced("$", `\$`, "&", `\&`, "<", `\<`, "=", `\=`, "+", `\+`, "!", `\!`, "'", `\'`, `"`, `\"`), "escapes of a pattern": replaced("$", `\$`, "+", `\+`, "-", `\-`, ".", `\.`),
	}
}

// misread is what one sees who takes UTF-8 for Latin-1.
func misread(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteRune(rune(c))
	}
	return b.String()
}

// TestWritings: a secret is found however a host writes it, at once and in pieces, and as many
// bytes come out. The control: a text that is like it comes out as it went in.
func TestWritings(t *testing.T) {
	for _, value := range []string{
		"sk-ant-api03-Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OWFiY2Rl", `pass +A/b="9<z>&\u00e9'$!-0123a4a5`, "alice:correct-horse-battery", "deadbeefcafebabe0123456789abcdef",
		`\n8f7a6b5c4d3ea%41`, "correct horse battery staple", "YWJjZGVmZ2hpamtsbW5vcHFyc3Q==",
	} {
		value = strings.ReplaceAll(value, `\u00e9`, "\u00e9")
		sought := seek(value)
		for name, write := range writings() {
			around := func(s string) string { return `{"a": "` + s + "\", \"b\": 1}\n" }
			text := around(write(value))
			for _, most := range []int{len(text), 4} {
				s, out, r := scan{needles: sought}, "", rand.New(rand.NewPCG(1, 2))
				for rest := text; rest != ""; {
					n := min(1+r.IntN(most), len(rest))
					if most == len(text) {
						n = most
					}
					part, _ := s.takeMore([]byte(rest[:n]), n == len(rest))
					out, rest = out+string(part), rest[n:]
				}
				if len(out) != len(text) || strings.Count(out, "x") < len(value)*2/3 || sought.findInText(out) != "" {
					t.Errorf("%s of %q in pieces of %d: %q", name, value, most, out)
				}
			}
			middle := len(value) / 2 // its first letter alone may be lost: see endsASequence
			harmless := around(write(value[:middle] + "Q" + value[middle+1:]))
			if out := sought.masked(harmless); out != harmless && value[0] != '\\' {
				t.Errorf("%s: what is harmless came as %q", name, out)
			}
		}
	}
}

// TestABoundedPartIsKept: blanks behind base64, or zero bytes behind a beginning, have no more of a
// stream kept than an escaped needle takes. The control: what comes behind the blanks is found.
func TestABoundedPartIsKept(t *testing.T) {
	const needle = "sk-ant-api03-Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OWFiY2Rl"
	sought := seek(needle)
	for name, c := range map[string][2]string{
		"blanks": {"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0NTY3ODk\n", " "},
		"lines":  {base64.StdEncoding.EncodeToString([]byte(needle[:30])), "\n"}, "zero bytes": {needle[:20], "\x00"}, "hyphens": {needle[:20], "\u00ad"},
	} {
		s, out := scan{needles: sought}, 0
		in, most := c[0]+strings.Repeat(c[1], 200_000), 0
		for rest := in; rest != ""; {
			n := min(1_000, len(rest))
			part, _ := s.takeMore([]byte(rest[:n]), false)
			out, rest, most = out+len(part), rest[n:], max(most, len(s.buf))
		}
		if bound := keptAlways + keptPerByte*sought.most; most > bound || len(in)-out > s.boundHeld() {
			t.Errorf("%s: %d bytes were kept and %d held, of %d", name, most, len(in)-out, bound)
		}
		if rest, of := s.takeMore([]byte(" "+needle+" "), true); of == "" || strings.Contains(string(rest), needle) {
			t.Errorf("%s: behind them %q comes", name, rest)
		}
	}
}

// TestAFieldThatIsNamedLikeASecret goes, also where its name has the secret in hexadecimal.
func TestAFieldThatIsNamedLikeASecret(t *testing.T) {
	h := http.Header{"X-Sk-Ant-Api03-Abcdef": {"a"}, fmt.Sprintf("X-%X", "SK-ant-API03-abcDEF"): {"b"}, fmt.Sprintf("x-%x", "SK-ant-API03-abcDEF"): {"c"}, "X-Other": {"d"}}
	maskHeader(seek("SK-ant-API03-abcDEF"), h)
	if len(h) != 1 || h.Get("X-Other") != "d" {
		t.Errorf("%v", h)
	}
}
