package requests

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// verdict is what the readers of a body of some type find in it, so many bytes at a time.
func verdict(kind string, body []byte, cut int) string {
	h := http.Header{}
	if kind != "" {
		h.Set("Content-Type", kind)
	}
	readers, _ := readersOf(h)
	for _, one := range readers {
		for rest := body; len(rest) > 0; {
			n := min(cut, len(rest))
			if wrong := one.readPiece(rest[:n]); wrong != "" {
				return wrong
			}
			rest = rest[n:]
		}
		if wrong := one.endText(); wrong != "" {
			return wrong
		}
	}
	return ""
}

// FuzzMethodKeys: wherever a body is cut while it is read, the finding is the same; and what Go's own
// readers of forms take for the field _method is always found, and of JSON what the reader of forms finds.
func FuzzMethodKeys(f *testing.F) {
	kinds := []string{"", "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain"}
	for i := range kinds {
		for _, body := range []string{`{"_method":"PUT"}`, "a=b&_method=PUT", "%5fmethod=x", `[{"a":1}]`, "\xff\xfe{\x00\"\x00_\x00", "--x\r\nContent-Disposition: form-data; name=\"_method\"\r\n\r\nPUT\r\n--x--", `{"a":"\u005fmethod", "\u005fmethod":1}`, "  {\"x\":{}}"} {
			f.Add([]byte(body), uint8(i), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, kind, cut uint8) {
		if len(body) > 1<<14 {
			return
		}
		name := kinds[int(kind)%len(kinds)]
		whole := verdict(name, body, max(len(body), 1))
		if got := verdict(name, body, int(cut)+1); (got == "") != (whole == "") {
			t.Fatalf("%s: %q is %q, and %d bytes at a time %q", name, body, whole, int(cut)+1, got)
		}
		if whole != "" {
			return
		}
		var object map[string]any
		if json.Unmarshal(body, &object) == nil && name != kinds[3] {
			for key := range object {
				form := &formKeys{}
				if form.readPiece([]byte(url.QueryEscape(key)+"=PUT")) != "" && !dataKey.MatchString(strings.ToLower(key)) {
					t.Fatalf("%s: nothing was found in %q", name, body)
				}
			}
		}
		if form, err := url.ParseQuery(string(body)); err == nil && form.Has("_method") && (name == "" || name == kinds[2]) {
			t.Fatalf("%s: nothing was found in %q", name, body)
		}
	})
}
