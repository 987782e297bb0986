package egress_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// rejections is how many are on record.
func (d *fakeDoor) rejections() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rejected)
}

// TestRequestsInTurn: what comes behind a request is judged by itself, however the one
// before is ended or answered, and the host sees nothing of what is not for it.
func TestRequestsInTurn(t *testing.T) {
	const host, bad = "Host: api.example\r\n", "GET /bad HTTP/1.1\r\nHost: api.example\r\n\r\n"
	good := "GET /good/next HTTP/1.1\r\n" + host + "\r\n"
	for name, c := range map[string]struct {
		sent  string
		said  []int // the answers; 0: the connection ends
		wants []string
	}{
		"folded":           {"GET /good/a HTTP/1.1\r\nX: a\r\n Host: evil.example\r\n" + host + "\r\n" + bad, []int{200, 403}, []string{"GET /good/a"}},
		"bare line feeds":  {"GET /good/a HTTP/1.1\nHost: api.example\n\n" + bad, []int{200, 403}, []string{"GET /good/a"}},
		"chunks by length": {"POST /good/a HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + bad, []int{200, 403}, []string{"POST /good/a"}},
		// A client that is refused and was to be asked first has its body for none, and the connection ends.
		"refused with a body behind": {"POST /bad HTTP/1.1\r\n" + host + fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(good)) + good, []int{403, 0}, nil},
		"asked and sent at once":     {"POST /good/a HTTP/1.1\r\n" + host + fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(good)) + good + bad, []int{100, 200, 403}, []string{"POST /good/a"}},
		"asked for nothing":          {"POST /good/a HTTP/1.1\r\n" + host + "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n" + bad, []int{200, 403}, []string{"POST /good/a"}},
		// A host that does not switch leaves no tunnel behind.
		"a socket that is none": {"GET /good/a HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + bad, []int{200, 403}, []string{"GET /good/a"}},
		"CONNECT":               {"CONNECT api.example:443 HTTP/1.1\r\n" + host + "\r\n" + good, []int{405, 0}, nil},
	} {
		got := &seen{}
		e := endAt(t, got, "api.example")
		conn := e.raw(t)
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(conn)
		for _, want := range c.said {
			a, err := http.ReadResponse(answers, nil)
			if want == 0 && err != nil {
				continue
			}
			if err != nil || a.StatusCode != want {
				t.Errorf("%s: %+v %v, want %d", name, a, err, want)
				break
			}
			_, _ = io.Copy(io.Discard, a.Body)
		}
		var saw []string
		for _, one := range got.all() {
			fields := strings.Fields(one)
			saw = append(saw, fields[0]+" "+fields[2])
		}
		if !slices.Equal(saw, c.wants) {
			t.Errorf("%s: the host saw %q", name, got.all())
		}
		_ = conn.Close()
	}
}

// TestHTTP2RequestsThatAreReadTwoWays: fields of HTTP/2 that another version would read in
// another way, and ones that are of none. None reaches the host; the control does.
func TestHTTP2RequestsThatAreReadTwoWays(t *testing.T) {
	got := &seen{}
	e, records := endAt(t, got, "api.example"), 0
	for _, c := range []struct {
		name   string
		fields string // name=value in turn, by spaces
		status string // "": the stream is reset, or the connection ends
		record bool   // it is on record
	}{
		{"the control", ":method=GET :scheme=https :authority=api.example :path=/good/a", "200", false},
		{"another authority", ":method=GET :scheme=https :authority=evil.example :path=/good/a", "421", true},
		{"another in Host", ":method=GET :scheme=https :path=/good/a host=evil.example", "421", true},
		{"two authorities", ":method=GET :scheme=https :authority=api.example :authority=evil.example :path=/good/a", "", true},
		{"who asks", ":method=GET :scheme=https :authority=x@api.example :path=/good/a", "", true},
		{"NUL", ":method=GET :scheme=https :authority=api.example\x00 :path=/good/a", "", true},
		{"no path", ":method=GET :scheme=https :authority=api.example", "", true},
		{"a path of another host", ":method=GET :scheme=https :authority=api.example :path=https://evil.example/good/a", "421", true},
		{"a path that is none", ":method=GET :scheme=https :authority=api.example :path=good/a", "", true},
		{"all of it", ":method=OPTIONS :scheme=https :authority=api.example :path=*", "400", true},
		{"another scheme", ":method=GET :scheme=ftp :authority=api.example :path=/good/a", "", true},
		{"a method of two", ":method=GET\u00a0/bad :scheme=https :authority=api.example :path=/good/a", "403", false},
		{"CONNECT", ":method=CONNECT :authority=api.example:443", "405", true},
		{"a socket by CONNECT", ":method=CONNECT :protocol=websocket :scheme=https :authority=api.example :path=/good/a", "", true},
		{"an unknown field", ":method=GET :scheme=https :authority=api.example :path=/good/a :evil=1", "", true},
		{"a late one", ":method=GET :scheme=https :authority=api.example x=1 :path=/good/a", "", true},
		{"capitals", ":method=GET :scheme=https :authority=api.example :path=/good/a X-Y=1", "", true},
		{"a line within", ":method=GET :scheme=https :authority=api.example :path=/good/a x=a\r\nhost:evil.example", "", true},
		{"chunks", ":method=POST :scheme=https :authority=api.example :path=/good/a transfer-encoding=chunked", "400", true},
		{"an upgrade", ":method=GET :scheme=https :authority=api.example :path=/good/a connection=upgrade upgrade=h2c", "400", true},
		{"another method", ":method=GET :scheme=https :authority=api.example :path=/good/a x-http-method-override=DELETE", "400", true},
	} {
		before := e.door.rejections()
		if status := e.fields(t, c.fields); status != c.status {
			t.Errorf("%s: answered %q, want %q", c.name, status, c.status)
		}
		if c.record {
			records++
			e.door.until(t, c.name, func() bool {
				return len(e.door.rejected) == before+1 && strings.HasPrefix(e.door.rejected[before], "network.http ")
			})
		}
	}
	e.door.mu.Lock()
	defer e.door.mu.Unlock()
	if n := len(e.door.rejected); n != records { // the control has none
		t.Errorf("%d records of %d: %q", n, records, e.door.rejected)
	}
	if all := got.all(); !slices.Equal(all, []string{`GET api.example /good/a ""`}) {
		t.Errorf("the host saw %q", all)
	}
}

// fields sends a request of HTTP/2 as it is, and gives the answer's status; "" if the
// stream is reset or the connection ends.
func (e *end) fields(t *testing.T, text string) (status string) {
	t.Helper()
	t.Helper()
	config := e.tls.Clone()
	config.NextProtos = []string{"h2"}
	conn := tls.Client(to(t, e.dial(), "api.example", 443), config)
	defer conn.Close()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encode := hpack.NewEncoder(&block)
	for field := range strings.SplitSeq(text, " ") {
		at := strings.Index(field[1:], "=") + 1
		if err := encode.WriteField(hpack.HeaderField{Name: field[:at], Value: field[at+1:]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return ""
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			return f.PseudoValue("status")
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return ""
		}
	}
}

// TestHostsThatLie: a host whose answer is none, or is not as long as it says, harms nobody:
// the client gets no whole answer, or the length that was said, and asks again.
func TestHostsThatLie(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		body   string // "": it must not look whole
	}{
		"the control":       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
		"too short":         {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", 200, ""},
		"too long":          {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", 200, "hi"},
		"two lengths":       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\nhi", 502, ""},
		"chunks that end":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nha", 200, ""},
		"chunks of no size": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n", 200, ""},
		"no status":         {"hello\r\n\r\n", 502, ""},
		"a huge header":     {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 2<<20) + "\r\n\r\n", 502, ""},
		"early without end": {strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: a\r\n\r\n", 1000), 502, ""},
		"an odd switch":     {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 502, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, pair := newEnd(t, egress.Limits{}, "api.example")
			serveRaw(t, e, pair, c.answer)
			client := e.client(t, false)
			for range 2 { // the second finds all as it was
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/a", nil)
				if err != nil {
					t.Fatal(err)
				}
				a, err := client.Do(r)
				if err != nil {
					if c.body == "" {
						continue // it was cut
					}
					t.Fatal(err)
				}
				body, err := io.ReadAll(a.Body)
				_ = a.Body.Close()
				if a.StatusCode != c.status || c.status == 200 && (err == nil) != (c.body != "") || c.body != "" && string(body) != c.body {
					t.Errorf("%d %.60q %v", a.StatusCode, body, err)
				}
			}
			client.CloseIdleConnections()
			e.door.until(t, "the records", func() bool { return len(e.door.done) == 2 })
			for _, one := range e.door.done {
				if (one.Problem == "") != (c.body != "") {
					t.Errorf("on record is %+v", one)
				}
			}
		})
	}
}

// serveRaw has a host say one answer on each connection, when it was asked, and end it.
func serveRaw(t *testing.T, e *end, pair tls.Certificate, answer string) {
	t.Helper()
	t.Helper()
	listener := tls.NewListener(e.at, &tls.Config{Certificates: []tls.Certificate{pair}})
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, answer)
				}
			}()
		}
	}()
}

// TestSlowRequests: who begins a request and does not go on with its header is cut off, and
// told why; who talks meanwhile is not. A busy machine may need longer for all of it than the
// header may take: then it may take longer.
func TestSlowRequests(t *testing.T) {
	for within := 250 * time.Millisecond; ; within *= 2 {
		served, told := slowRequest(t, within)
		if served && told == "network.http api.example:443 the header of a request did not come in time" {
			return
		}
		if within > time.Minute {
			t.Fatalf("the other client was served: %t; on record is %q", served, told)
		}
	}
}

// slowRequest has a request begun and not go on until it is cut off, and another made meanwhile.
// It tells whether that was answered, and what is on record of the first.
func slowRequest(t *testing.T, within time.Duration) (served bool, told string) {
	t.Helper()
	e := endWithin(t, egress.Limits{HelloTime: within})
	slow := e.raw(t)
	defer slow.Close()
	if _, err := io.WriteString(slow, "GET /good/a HTTP/1.1\r\nHost: api.exa"); err != nil {
		return false, err.Error()
	}
	if a, err := e.client(t, false).Get("https://api.example/good/a"); err == nil {
		served = a.StatusCode == http.StatusOK
		_ = a.Body.Close()
	}
	if text, _ := io.ReadAll(slow); strings.Contains(string(text), "200") {
		t.Errorf("it was answered %q", text)
	}
	e.door.until(t, "the record", func() bool { return len(e.door.rejected) > 0 })
	e.door.mu.Lock()
	defer e.door.mu.Unlock()
	return served, strings.Join(e.door.rejected, "; ")
}

// TestSlowAnswers: a host that begins an answer and does not go on with its header is left.
func TestSlowAnswers(t *testing.T) {
	silent, pair := newEnd(t, egress.Limits{Idle: 300 * time.Millisecond}, "api.example")
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	listener := tls.NewListener(silent.at, &tls.Config{Certificates: []tls.Certificate{pair}})
	go func() {
		if conn, err := listener.Accept(); err == nil {
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 200 O")
			<-gone
		}
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := silent.client(t, false).Do(r); err == nil {
		_ = a.Body.Close()
		if a.StatusCode != http.StatusBadGateway {
			t.Errorf("%+v", a)
		}
	}
	silent.door.until(t, "the record", func() bool { return len(silent.door.ended) == 1 })
}

func endWithin(t *testing.T, limits egress.Limits) *end {
	t.Helper()
	t.Helper()
	e, pair := newEnd(t, limits, "api.example")
	serveRaw(t, e, pair, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
	return e
}
