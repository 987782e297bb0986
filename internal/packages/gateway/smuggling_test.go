package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
)

// converse sends bytes over a TLS connection to a name and reads until the
// gateway closes it.
func (b *bench) converse(name, text string) string {
	b.t.Helper()
	near, far := net.Pipe()
	go b.gateway.ServeRegistry(far, sandboxA)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b.door.caPEM)
	conn := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12})
	defer near.Close() // and not the connection over it: its farewell waits 5 s where nobody reads any more
	go func() {
		_, _ = io.WriteString(conn, text) // the gateway may answer and close before it has read all
		_, _ = io.WriteString(conn, "GET /end HTTP/1.1\r\nHost: "+name+"\r\nConnection: close\r\n\r\n")
	}()
	got, _ := io.ReadAll(conn) // cut off or closed: what came before counts
	return string(got)
}

// TestSmuggling is G-PR-01 and -02: where one reader would see two requests and
// another one, the gateway sees none, or ends the connection; what is inside of
// a request's head or body is never a request. Two requests, one behind the
// other, are two (the control).
func TestSmuggling(t *testing.T) {
	const (
		host     = "Host: index.example\r\n"
		get      = "GET /simple/foo/ HTTP/1.1\r\n" + host
		smuggled = "GET /simple/smuggled/ HTTP/1.1\r\n" + host + "\r\n"
	)
	length := "Content-Length: " + strconv.Itoa(len(smuggled)) + "\r\n"
	for name, c := range map[string]struct {
		text string
		asks bool // the second is a request
	}{
		"one behind the other":       {get + "\r\n" + smuggled, true},
		"length and chunks":          {get + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, false},
		"chunks and length":          {get + "Transfer-Encoding: chunked\r\nContent-Length: 200\r\n\r\n0\r\n\r\n" + smuggled, false},
		"two lengths":                {get + "Content-Length: 0\r\nContent-Length: 200\r\n\r\n" + smuggled, false},
		"a list of lengths":          {get + "Content-Length: 0, 200\r\n\r\n" + smuggled, false},
		"a length with a sign":       {get + "Content-Length: +0\r\n\r\n" + smuggled, false},
		"a negative length":          {get + "Content-Length: -1\r\n\r\n" + smuggled, false},
		"a length":                   {get + length + "\r\n" + smuggled, false},
		"chunks":                     {get + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, false},
		"chunks by another name":     {get + "Transfer-Encoding: xchunked\r\n\r\n" + smuggled, false},
		"chunks twice":               {get + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled, false},
		"chunks in a folded line":    {get + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + smuggled, false},
		"a blank before the colon":   {get + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled, false},
		"a line without a colon":     {get + "Transfer-Encoding\r\n\r\n" + smuggled, false},
		"a line that begins blank":   {"GET /simple/foo/ HTTP/1.1\r\n " + host + "\r\n" + smuggled, false},
		"a carriage return alone":    {get + "X: y\rContent-Length: 200\r\n\r\n" + smuggled, false},
		"a zero byte":                {get + "X: \x00\r\n\r\n" + smuggled, false},
		"two hosts":                  {get + host + "\r\n" + smuggled, false},
		"a blank in the path":        {"GET /simple/foo/ /x HTTP/1.1\r\n" + host + "\r\n" + smuggled, false},
		"a request in the path":      {"GET /simple/foo/%20HTTP/1.1%0d%0aHost:x%0d%0a%0d%0aGET%20/simple/smuggled/ HTTP/1.1\r\n" + host + "Connection: close\r\n\r\n", false},
		"no version":                 {"GET /simple/foo/\r\n" + smuggled, false},
		"HTTP/2 by its preface":      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled, false},
		"HTTP/2 by an upgrade":       {get + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 1\r\n\r\n" + smuggled, false},
		"an expected continuation":   {get + "Expect: 100-continue\r\n" + length + "\r\n" + smuggled, false},
		"a head of a megabyte":       {get + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n" + smuggled, false},
		"ten thousand lines of head": {get + strings.Repeat("X: y\r\n", 10_000) + "\r\n" + smuggled, false},
		"a path of 64 kB":            {"GET /simple/" + strings.Repeat("a", 1<<16) + "/ HTTP/1.1\r\n" + host + "\r\n" + smuggled, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.publish(pypitest.Wheel(t, "foo", "1.0"))
			b.publish(pypitest.Wheel(t, "smuggled", "1.0"))
			got := b.converse(indexHost, c.text)
			n := b.registry.Count(indexHost + "/simple/smuggled/")
			if asks := n > 0; asks != c.asks {
				t.Errorf("the second was asked for %d times; the gateway answered %.300q", n, got)
			}
			if n := b.registry.Count(indexHost + "/simple/foo/"); n > 1 {
				t.Errorf("the first was asked for %d times", n)
			}
			if !c.asks && !strings.HasPrefix(got, "HTTP/1.1 4") && !strings.HasPrefix(got, "HTTP/1.1 501") {
				t.Errorf("answered %.300q", got)
			}
		})
	}
}
