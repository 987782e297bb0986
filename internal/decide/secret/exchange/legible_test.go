package exchange

import (
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWritingsBetweenBytesThatAreNoText: in what is no UTF-8, and what is that in base64, a secret is found in all
// writings, right beside such bytes, and wherever what comes is cut. The controls: one with another letter, and a
// secret of letters that are not ASCII, which has writings that are no UTF-8 either.
func TestWritingsBetweenBytesThatAreNoText(t *testing.T) {
	ways := map[string]func(string) string{
		"a zero byte":  func(s string) string { return s[:5] + "\x00" + s[5:] },
		"nothing seen": func(s string) string { return s[:5] + "\u200b\u00ad" + s[5:] },
		"base64":       func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s[:4] + "\x01" + s[4:])) },
		"base64 in JSON": func(s string) string {
			return `"` + base64.StdEncoding.EncodeToString([]byte("\xff\xfe"+s+"\xff")) + `"`
		},
	}
	every := maps.Clone(ways)
	maps.Copy(every, escapes()) // which are those of ASCII
	for _, secret := range []string{"sk-secret/value+1", "gr\u00fc\u00dfe-aus-k\u00f6ln"} {
		sought := seek(secret)
		ways := ways
		if secret == "sk-secret/value+1" {
			ways = every
		}
		for name, write := range ways {
			for _, bytes := range []int{1, 2, 40} {
				r := rand.New(rand.NewPCG(5, uint64(bytes)))
				noise := func() string {
					var b strings.Builder
					for range bytes {
						b.WriteByte(byte(0xf8 + r.IntN(8))) // which no character has
						b.WriteString(junk(r, alnum, r.IntN(3)))
					}
					return b.String() + "\xff"
				}
				for _, wrap := range []func(string) string{
					func(s string) string { return s },
					func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
				} {
					before, after := noise(), noise()
					text := wrap(before + write(secret) + after)
					for _, size := range []int{1, 7, len(text)} {
						out := scanned(sought, text, size)
						if decoded, err := base64.StdEncoding.DecodeString(out); len(out) != len(text) || out == text || strings.Contains(out, write(secret)) || err == nil && strings.Contains(string(decoded), write(secret)) {
							t.Fatalf("%s of %s between %d bytes, by %d: %q came as %q", name, secret, bytes, size, text, out)
						}
					}
					other := wrap(before + write(strings.Replace(secret, "e", "E", 1)) + after)
					if out := scanned(sought, other, len(other)); out != other {
						t.Fatalf("the control, %s: %q came as %q", name, other, out)
					}
				}
			}
		}
	}
}

// TestACharacterThatIsNotSeenInParts: what is not seen between a secret's letters may itself have an escape, or
// something that is not seen, between its bytes; so none of these bytes ends what is read. The control is a byte
// with which no such character goes on.
func TestACharacterThatIsNotSeenInParts(t *testing.T) {
	const secret = "sk-secret/value+1"
	sought := seek(secret)
	for between, hides := range map[string]bool{
		"\xe2%80%8b": true, "\xe2\x80%8b": true, "\xe2\x80\x1c\x8b": true, "\xe2\x1c\x80\x1c\x8b": true, "\xc2%ad": true, "\xc2=\r\n\xad": true, "\xc2\x00\xad": true,
		"\xf3\x00\xa0\x00\x84\x00\x80": true, "\xff": false, "\xe2z\x80\x8b": false,
	} {
		text := "a" + secret[:5] + between + secret[5:] + "b"
		for _, wrap := range []func(string) string{
			func(s string) string { return s },
			func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		} {
			text := wrap(text)
			for _, size := range []int{1, 7, len(text)} {
				if out := scanned(sought, text, size); (out != text) != hides {
					t.Errorf("%q by %d: %q came as %q", between, size, text, out)
				}
			}
		}
	}
}
