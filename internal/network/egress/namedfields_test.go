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
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it did not come whole
	}
	method := r.Method
	if kind := r.Header.Get("Content-Type"); r.Method == http.MethodPost && (kind == "" || strings.HasPrefix(kind, "application/x-www-form-urlencoded")) {
		for field := range strings.SplitSeq(string(body), "&") {
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

// TestATypeThatIsTakenOut: a client's Connection field has other fields taken out on the way. A body is judged by what
// the host gets with it. The controls: JSON that is sent as it is arrives, also beside fields that Connection names
// and nobody judges by.
func TestATypeThatIsTakenOut(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, methods: [GET, POST], paths: [\"/good\"] }\n"
	const long = 5 << 20
	for name, c := range map[string]struct {
		head, body string
		want       int
	}{
		"called JSON":              {"Content-Type: application/json\r\nConnection: Content-Type\r\n", "1&_method=DELETE", 400},
		"called JSON, in capitals": {"content-type: application/json\r\nConnection: x, CONTENT-TYPE\r\n", "true&_method=DELETE", 400},
		"in a second field":        {"Content-Type: application/json\r\nConnection: keep-alive\r\nConnection:\tcontent-type \r\n", "1&_method=DELETE", 400},
		"called parts":             {"Content-Type: multipart/form-data; boundary=x\r\nConnection: Content-Type\r\n", "--x&_method=DELETE", 400},
		"called encoded, long":     {"Content-Type: text/plain\r\nContent-Encoding: gzip\r\nConnection: Content-Type, Content-Encoding\r\n", longGzip(t, long) + "&_method=DELETE&", 400},
		"a form":                   {"Content-Type: application/x-www-form-urlencoded\r\n", "1&_method=DELETE", 400},
		"no type":                  {"", "1&_method=DELETE", 400},
		"control":                  {"Content-Type: application/json\r\n", "{}", 200},
		"control: another field":   {"Content-Type: application/json\r\nX-Hop: 1\r\nConnection: X-Hop, Keep-Alive\r\n", "{}", 200},
	} {
		got := &seen{}
		e := endUnder(t, rules, rack{got}, "api.example")
		conn := e.raw(t)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			// A refusal may come before all of it is sent.
			_, _ = fmt.Fprintf(conn, "POST /good HTTP/1.1\r\nHost: api.example\r\n%sContent-Length: %d\r\n\r\n%s", c.head, len(c.body), c.body)
		}()
		a, err := http.ReadResponse(bufio.NewReader(conn), nil)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case a.StatusCode != c.want:
			t.Errorf("%s is answered %d, want %d", name, a.StatusCode, c.want)
		}
		_ = conn.Close()
		<-sent
		if done := got.all(); len(done) > 0 != (c.want == 200) || strings.HasPrefix(strings.Join(done, ""), "DELETE") {
			t.Errorf("%s: the policy has GET and POST, and the host has done %q", name, done)
		}
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
