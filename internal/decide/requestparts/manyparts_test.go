package requestparts_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/requestparts"
)

// TestEveryPartIsRead: a part that is encoded is read however many are before it, whatever ends its head, and however many heads
// have one end. The control has nothing before it.
func TestEveryPartIsRead(t *testing.T) {
	t.Parallel()
	const secret = "what a server reads"
	encoded := base64.StdEncoding.EncodeToString([]byte(secret))
	head := func(end string) string { return "Content-Transfer-Encoding: base64" + end + encoded }
	many := func(n int, of string) string { return strings.Repeat(of, n) }
	var names strings.Builder
	for n := range 100 {
		fmt.Fprintf(&names, "Content-Transfer-Encoding: x%d\n", n)
	}
	for what, c := range map[string]struct{ kind, body string }{
		"control":                             {"multipart/form-data", "--x\r\n" + head("\r\n\r\n") + "\r\n--x--"},
		"bare line ends":                      {"multipart/form-data", "--x\n" + head("\n\n") + "\n--x--"},
		"bare line ends, and a proper later":  {"multipart/form-data", "--x\n" + head("\n\n") + "\n--x\r\nA: b\r\n\r\nc\r\n--x--"},
		"a carriage return, then bare ones":   {"multipart/form-data", "--x\n" + "A: \r\r\n" + head("\n\n") + "\n--x\r\nA: b\r\n\r\nc\r\n--x--"},
		"carriage returns in a head":          {"multipart/form-data", "--x\nContent-Transfer-Encoding: base64\nA: \r\rb\n\n" + encoded + "\n--x\r\nA: b\r\n\r\nc\r\n--x--"},
		"a bare one, and a proper one":        {"multipart/form-data", "--x\n" + head("\n\r\n") + "\n--x\r\nA: b\r\n\r\nc\r\n--x--"},
		"a bare one, and a carriage return":   {"multipart/form-data", "--x\n" + head("\n\r") + "\n--x\r\nA: b\r\n\r\nc\r\n--x--"},
		"no end, but a line of blanks":        {"multipart/form-data", "--x\nContent-Transfer-Encoding: base64\n" + encoded + "\n \n--x--"},
		"a line of blanks":                    {"multipart/form-data", "--x\r\n" + head("\r\n \t\r\n") + "\r\n--x\r\nA: b\r\n\r\nc\r\n--x--"},
		"a line of blanks in a head":          {"multipart/form-data", "--x\r\nContent-Transfer-Encoding: base64\r\n \r\nA: abc\n\n" + encoded + "\r\n--x\r\nA: b\r\n\r\nc\r\n--x--"},
		"carriage returns":                    {"multipart/form-data", "--x\r" + head("\r\r") + "\n--x--"},
		"a bare end in a head that goes on":   {"multipart/form-data", "--x\r\nContent-Transfer-Encoding: base64\n\n--no\r\n\r\n" + encoded + "\r\n--x--"},
		"behind twenty thousand":              {"multipart/form-data", many(20_000, "--x\r\nContent-Transfer-Encoding: 7bit\r\n\r\na\r\n") + "--x\r\n" + head("\r\n\r\n") + "\r\n--x--"},
		"behind others of the same head":      {"multipart/form-data", "--x\r\n" + many(3, "Content-Transfer-Encoding: 8bit\r\n") + head("\r\n\r\n") + "\r\n--x--"},
		"behind unknown ones of the same end": {"application/octet-stream", names.String() + head("\n\n") + "\n--x--"},
	} {
		found := false
		unread := requestparts.BodyOf(http.Header{"Content-Type": {c.kind + "; boundary=x"}}).Each([]byte(c.body), func(read []byte) bool {
			found = found || bytes.Contains(read, []byte(secret))
			return true
		})
		if !found || unread != "" {
			t.Errorf("%s: found %v, %q", what, found, unread)
		}
	}
}
