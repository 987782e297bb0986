package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// seen are the requests that a place gets, as it reads them.
type seen struct {
	mu       sync.Mutex
	requests []string
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if coding := r.Header.Get("Content-Encoding"); coding != "" {
		body = append([]byte(coding+" "), body...)
	}
	s.requests = append(s.requests, fmt.Sprintf("%s %s %s %q", r.Method, r.Host, r.RequestURI, body))
	fmt.Fprint(w, "hello")
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// TestHostOverHTTP: each request is for the connection's host, or ends it.
func TestHostOverHTTP(t *testing.T) {
	at, got := newPlace(t), &seen{}
	s := httptest.NewUnstartedServer(got)
	_ = s.Listener.Close() // another takes its place
	s.Listener = at
	s.Start()
	t.Cleanup(s.Close)
	good := "GET /a%2Fb?x=%zz;y HTTP/1.1\r\nHost: api.example\r\n\r\n"
	evil := "GET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n"
	for name, c := range map[string]struct {
		sent   string
		status int    // of the last answer
		wants  string // requests that the host sees
	}{
		"one":                  {good, 200, `GET api.example /a%2Fb?x=%zz;y ""`},
		"capitals and port":    {"GET / HTTP/1.1\r\nHost: API.example:80\r\n\r\n", 200, `GET API.example:80 / ""`},
		"absolute form":        {"GET http://api.example/x HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200, `GET api.example /x ""`},
		"two":                  {good + "POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 2\r\n\r\nhi", 200, `GET api.example /a%2Fb?x=%zz;y "" POST api.example / "hi"`},
		"another authority":    {evil, 421, ""},
		"another second":       {good + evil, 421, `GET api.example /a%2Fb?x=%zz;y ""`},
		"another absolute":     {"GET http://evil.example/x HTTP/1.1\r\nHost: api.example\r\n\r\n", 421, ""},
		"another scheme":       {"GET https://api.example/x HTTP/1.1\r\nHost: api.example\r\n\r\n", 400, ""},
		"another port":         {"GET / HTTP/1.1\r\nHost: api.example:8080\r\n\r\n", 421, ""},
		"a port without one":   {"GET / HTTP/1.1\r\nHost: api.example:\r\n\r\n", 421, ""},
		"a port twice":         {"GET / HTTP/1.1\r\nHost: api.example:80:80\r\n\r\n", 421, ""},
		"a port as it is not":  {"GET / HTTP/1.1\r\nHost: api.example:080\r\n\r\n", 421, ""},
		"something before":     {"GET / HTTP/1.1\r\nHost: xapi.example\r\n\r\n", 421, ""},
		"something behind":     {"GET / HTTP/1.1\r\nHost: api.example.evil.example:80\r\n\r\n", 421, ""},
		"a part of it":         {"GET / HTTP/1.1\r\nHost: api.exampl\r\n\r\n", 421, ""},
		"another letter":       {"GET / HTTP/1.1\r\nHost: \x01PI.example\r\n\r\n", 400, ""},
		"a dot behind":         {"GET / HTTP/1.1\r\nHost: api.example.\r\n\r\n", 421, ""},
		"two authorities":      {"GET / HTTP/1.1\r\nHost: api.example\r\nHost: evil.example\r\n\r\n", 400, ""},
		"no authority":         {"GET / HTTP/1.1\r\n\r\n", 400, ""},
		"HTTP/1.0 without one": {"GET / HTTP/1.0\r\n\r\n", 421, ""},
		"userinfo":             {"GET / HTTP/1.1\r\nHost: api.example@evil.example\r\n\r\n", 400, ""},
		"CONNECT":              {"CONNECT api.example:80 HTTP/1.1\r\nHost: api.example\r\n\r\n", 405, ""},
		"TRACE":                {"TRACE / HTTP/1.1\r\nHost: api.example\r\n\r\n", 405, ""},
		"h2c":                  {"GET / HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", 400, ""},
		"HTTP/2":               {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, ""},
		"two lengths":          {"POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n" + evil, 400, ""},
		"length and chunks":    {"POST / HTTP/1.1\r\nHost: api.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil, 421, `POST api.example / ""`},
		"odd chunks":           {"POST / HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + evil, 501, ""},
		"a space in a name":    {"GET / HTTP/1.1\r\nHost : api.example\r\nHost: api.example\r\n\r\n", 400, ""},
		"folded":               {"GET / HTTP/1.1\r\nX: a\r\n Host: evil.example\r\nHost: api.example\r\n\r\n", 200, `GET api.example / ""`},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(got.all())
			d := &fakeDoor{allowed: hosts()}
			conn := to(t, uplinkTo(t, d, egress.Limits{}, pinned(t, at.Addr()))(), "api.example", 80)
			if _, err := io.WriteString(conn, c.sent); err != nil {
				t.Fatal(err)
			}
			status, answers, most := 0, bufio.NewReader(conn), strings.Count(c.wants, " \"")
			if c.status != 200 {
				most++
			}
			for range most {
				a, err := http.ReadResponse(answers, nil)
				if err != nil {
					break
				}
				status = a.StatusCode
				_, _ = io.Copy(io.Discard, a.Body)
				_ = a.Body.Close()
			}
			if c.status != 0 && status != c.status {
				t.Errorf("answered %d, want %d", status, c.status)
			}
			if c.status == 421 && (len(d.rejected) != 1 || !strings.HasPrefix(d.rejected[0], "network.http api.example:80 a request is to another authority than api.example")) {
				t.Errorf("on record are %q", d.rejected)
			}
			if all := strings.Join(got.all()[before:], " "); all != c.wants {
				t.Errorf("the host saw %s, want %s", all, c.wants)
			}
			_ = conn.Close()
		})
	}
}
