package exchange

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
)

// TestIndentedLinesInAForm: a blank that indents a line of base64 or hexadecimal is a plus in a form. The
// control: a line that begins with the letter +, without any.
func TestIndentedLinesInAForm(t *testing.T) {
	const secret = "sk-ant-api03-Zm9vYmFyYmF6cXV4MDEyMzQ1Njc4OWFiY2Rl"
	sought := seek(secret)
	for name, code := range map[string]func([]byte) string{"base64": base64.StdEncoding.EncodeToString, "hexadecimal": hex.EncodeToString} {
		for _, indent := range []string{"", " ", "  ", "        ", "\t"} {
			for _, end := range []string{"\n", "\r\n"} {
				coded := code([]byte("before it " + secret + " behind it"))
				var lines []string
				for ; len(coded) > 16; coded = coded[16:] {
					lines = append(lines, coded[:16])
				}
				text := "a=1&key=" + url.QueryEscape(strings.Join(append(lines, coded), end+indent)) + "&b=2"
				if out := sought.masked(text); strings.Count(out, "x") < len(secret) || !strings.HasPrefix(out, "a=1&key=") || !strings.HasSuffix(out, "&b=2") {
					t.Errorf("%s indented by %q: %s", name, indent, out)
				}
			}
		}
	}
	// Three bytes 0xfb 0xef 0xbe are ++++ in base64, so the second line begins with letters that are pluses.
	plus := base64.StdEncoding.EncodeToString([]byte("key\xfb\xef\xbe" + secret))
	if out := sought.masked(plus[:4] + "\n" + plus[4:]); !strings.HasPrefix(plus[4:], "++++") || strings.Count(out, "x") < len(secret) {
		t.Errorf("the letter +: %s", out)
	}
}
