package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// rack answers as Rack does: a POST without a Content-Type has a form in its body, and _method in that is the
// method.
type rack struct{ done *seen }

func (s rack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method := r.Method
	if kind := r.Header.Get("Content-Type"); r.Method == http.MethodPost && (kind == "" || strings.HasPrefix(kind, "application/x-www-form-urlencoded")) {
		for _, field := range strings.Split(string(body), "&") {
			name, value, _ := strings.Cut(field, "=")
			if plain, err := url.QueryUnescape(name); err == nil && plain == "_method" {
				method = value
			}
		}
	}
	s.done.mu.Lock()
	defer s.done.mu.Unlock()
	s.done.requests = append(s.done.requests, method+" "+r.URL.Path)
	fmt.Fprintln(w, method)
}

// TestATypeThatIsTakenOut: a client's Connection field has other fields taken out on the way. What a body is judged
// by is what the host gets with it.
func TestATypeThatIsTakenOut(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, methods: [GET, POST], paths: [\"/good\"] }\n"
	const long = 5 << 20
	for name, c := range map[string]struct{ head, body string }{
		"called JSON":              {"Content-Type: application/json\r\nConnection: Content-Type\r\n", "1&_method=DELETE"},
		"called JSON, in capitals": {"content-type: application/json\r\nConnection: x, CONTENT-TYPE\r\n", "true&_method=DELETE"},
		"called parts":             {"Content-Type: multipart/form-data; boundary=x\r\nConnection: Content-Type\r\n", "--x&_method=DELETE"},
		"called encoded, long":     {"Content-Type: text/plain\r\nContent-Encoding: gzip\r\nConnection: Content-Type, Content-Encoding\r\n", longGzip(t, long) + "&_method=DELETE&"},
		"the control: a form":      {"Content-Type: application/x-www-form-urlencoded\r\n", "1&_method=DELETE"},
		"the control: no type":     {"", "1&_method=DELETE"},
	} {
		got := &seen{}
		e := endUnder(t, rules, rack{got}, "api.example")
		conn := e.raw(t)
		if _, err := fmt.Fprintf(conn, "POST /good HTTP/1.1\r\nHost: api.example\r\n%sContent-Length: %d\r\n\r\n%s", c.head, len(c.body), c.body); err != nil {
			t.Logf("%s: %v", name, err)
		}
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Logf("%s: %v", name, err)
		} else {
			said, _ := io.ReadAll(a.Body)
			t.Logf("%s: %d %.200s", name, a.StatusCode, said)
		}
		_ = conn.Close()
		for _, done := range got.all() {
			if strings.HasPrefix(done, "DELETE") {
				t.Errorf("%s: the policy has GET and POST, and the host has done %q", name, done)
			}
		}
	}
	got := &seen{} // what nobody minds arrives
	e := endUnder(t, rules, rack{got}, "api.example")
	conn := e.raw(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /good HTTP/1.1\r\nHost: api.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if a, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || a.StatusCode != http.StatusOK || len(got.all()) != 1 {
		t.Errorf("the control: %v %v %q", a, err, got.all())
	}
}

// longGzip is what gzip makes of bytes that it can't make shorter.
func longGzip(t *testing.T, size int) string {
	t.Helper()
	var text strings.Builder
	x := uint32(1)
	for text.Len() < size {
		x = x*1664525 + 1013904223
		text.WriteByte(byte(x >> 24))
	}
	return packed(t, "gzip", text.String())
}
