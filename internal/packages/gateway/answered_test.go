package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestAnswered: where the protocol has the answer a body may come. It is read,
// thrown away, and the connection goes on.
func TestAnswered(t *testing.T) {
	b := newToyBench(t, newToy(pkgref.Node), nil)
	const host = "Host: index.example\r\n"
	next := "GET /audit HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n"
	for name, request := range map[string]string{
		"no body":      "POST /audit HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n",
		"a body":       "POST /audit HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Encoding: gzip\r\n\r\nhello",
		"chunks":       "POST /audit HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"a mebibyte":   "PUT /audit HTTP/1.1\r\n" + host + "Content-Length: 1048576\r\n\r\n" + strings.Repeat("x", 1<<20),
		"a GET":        "GET /audit HTTP/1.1\r\n" + host + "\r\n",
		"GET and body": "GET /audit HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\nhi",
	} {
		answers := b.pipeline(indexHost, request+next, 2)
		for i, a := range answers {
			if a.StatusCode != 200 || a.body != "nothing" || a.Header.Get("X-Notice") != "judged elsewhere" {
				t.Errorf("%s, answer %d: %s", name, i, status(a))
			}
		}
	}
	for name, request := range map[string]string{
		"too large": "POST /audit HTTP/1.1\r\n" + host + "Content-Length: 1048577\r\n\r\n",
		"too many chunks": "POST /audit HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", 1<<16, strings.Repeat("x", 1<<16)), 17),
	} {
		if a := b.raw(indexHost, request); a.StatusCode != http.StatusRequestEntityTooLarge || !a.Close {
			t.Errorf("%s: %s", name, status(a))
		}
	}
	for request, want := range map[string]int{
		"POST /foo HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\nhi":                 405,
		"PUT /foo/1.0.0.pkg HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\nhi":        405,
		"POST /foo/1.0.0.mod HTTP/1.1\r\n" + host + "\r\n":                              405,
		"DELETE /keys HTTP/1.1\r\n" + host + "\r\n":                                     405,
		"POST /x?y HTTP/1.1\r\n" + host + "\r\n":                                        405,
		"GET /foo HTTP/1.1\r\n" + host + "Expect: 100-continue\r\n\r\n":                 400,
		"GET /foo HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\nhi":                  400,
		"CONNECT /audit HTTP/1.1\r\n" + host + "\r\n":                                   405,
		"TRACE /audit HTTP/1.1\r\n" + host + "\r\n":                                     405,
		"POST /audit HTTP/1.1\r\n" + host + "Upgrade: h2c\r\nContent-Length: 0\r\n\r\n": 400,
	} {
		if a := b.raw(indexHost, request); a.StatusCode != want {
			t.Errorf("%q: %s, want %d", request, status(a), want)
		}
	}
	if n := len(b.registry.Requests()); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
}

// TestAnsweredAfterAsking: a client that waits to be asked for its body is
// asked, unless the body is too large anyway.
func TestAnsweredAfterAsking(t *testing.T) {
	b := newToyBench(t, newToy(pkgref.Node), nil)
	for size, want := range map[int]int{1 << 10: 200, 2 << 20: 413} {
		body := &reading{Reader: bytes.NewReader(make([]byte, size))}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://index.example/audit", body)
		must(t, err)
		req.ContentLength = int64(size)
		req.Header.Set("Expect", "100-continue")
		c := b.client(sandboxA)
		c.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
		resp, err := c.Do(req)
		must(t, err)
		resp.Body.Close()
		asked := body.n.Load()
		if resp.StatusCode != want || (want != 200) == (asked > 0) {
			t.Errorf("%d bytes: %s; %d of them were asked for", size, resp.Status, asked)
		}
	}
}

// reading counts what is read of a body.
type reading struct {
	io.Reader
	n atomic.Int64
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}
