package gateway_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestWhatIsNoRequestIsOnRecord: what the server answers by itself, and what the gateway answers for
// its form, has a record. The control is a request like any other, which has none.
func TestWhatIsNoRequestIsOnRecord(t *testing.T) {
	const host = "Host: index.example\r\n"
	for name, c := range map[string]struct {
		said  string
		count int
	}{
		"control":             {"GET /simple/probe/ HTTP/1.1\r\n" + host + "\r\n", 0},
		"garbage":             {"\x00\x01\r\n\r\n", 1},
		"no version":          {"GET /simple/probe/\r\n\r\n", 1},
		"no host":             {"GET /simple/probe/ HTTP/1.1\r\n\r\n", 1},
		"another version":     {"GET /simple/probe/ HTTP/9.9\r\n" + host + "\r\n", 1},
		"an unknown encoding": {"POST /simple/probe/ HTTP/1.1\r\n" + host + "Transfer-Encoding: x\r\n\r\n", 1},
		"an expectation":      {"GET /simple/probe/ HTTP/1.1\r\n" + host + "Expect: x\r\n\r\n", 1},
		"too long":            {"GET /simple/probe/ HTTP/1.1\r\n" + host + "X: " + strings.Repeat("x", 1<<17) + "\r\n\r\n", 1},
		"all of it":           {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", 1},
		"a proxy's":           {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 1},
		"another host":        {"GET /simple/probe/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 1},
		"what writes":         {"PUT /p/x.whl HTTP/1.1\r\n" + host + "\r\n", 1},
		"half a head":         {"GET /simple/probe/ HTTP/1.1\r\nHo", 1},
		"half a head behind":  {"GET /simple/probe/ HTTP/1.1\r\n" + host + "\r\nDELETE /simple/probe/ HTTP/1.1\r\nHo", 1},
		"half a line behind":  {"GET /simple/probe/ HTTP/1.1\r\n" + host + "\r\nDELETE /sim", 1},
		"HTTP/2's preface":    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			near, far := net.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				b.gateway.ServeRegistry(far, sandboxA)
			}()
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(b.door.caPEM)
			conn := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: indexHost, MinVersion: tls.VersionTLS12})
			wrote := make(chan struct{})
			go func() {
				defer close(wrote)
				_, _ = io.WriteString(conn, c.said) // the gateway may answer before it has read all
			}()
			if strings.HasSuffix(c.said, "\n") || strings.Contains(c.said, "\r\n\r\n") {
				_, _ = conn.Read(make([]byte, 1))
			} else {
				<-wrote
			}
			_ = near.Close()
			<-wrote
			<-served
			count := func() (n int) {
				b.door.mu.Lock()
				defer b.door.mu.Unlock()
				return len(b.door.failures)
			}
			for deadline := time.Now().Add(10 * time.Second); count() < c.count && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond) // the server tells of the end after the connection's
			}
			_ = b.gateway.Close() // all is told by then
			if n := count(); n != c.count {
				t.Errorf("%d records, want %d: %+v", n, c.count, b.door.failures)
			}
		})
	}
}

// TestWhatIsNoClientHelloIsOnRecord: half of one, and what is no TLS. The controls have said nothing, or all of one
// that names a registry.
func TestWhatIsNoClientHelloIsOnRecord(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		want string // in the record; "": there is none
	}{
		"nothing":   {"", ""},
		"half":      {"\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03aaaaaaaaaaaa", "broke off"},
		"one byte":  {"\x16", "broke off"},
		"plain":     {"GET /simple/probe/ HTTP/1.1\r\n\r\n", "no TLS"},
		"nonsense":  {"\x16\x03\x01\x00\x04\x01\x00\x00\x00", "can't be read"},
		"a refusal": {"whole", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			near, far := net.Pipe()
			served := make(chan struct{})
			go func() {
				defer close(served)
				b.gateway.ServeRegistry(far, sandboxA)
			}()
			go func() { _, _ = io.Copy(io.Discard, near) }() // its alert
			if c.said == "whole" {                           // and does not trust the certificate then
				conn, fresh := bufferedPair(t) // each side may have more to say before it has read the other
				refused := make(chan struct{})
				go func() {
					defer close(refused)
					b.gateway.ServeRegistry(fresh, sandboxA)
				}()
				if err := tls.Client(conn, &tls.Config{ServerName: indexHost, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}).Handshake(); err == nil {
					t.Fatal("INCONCLUSIVE: it trusts everybody")
				}
				<-refused // by its alert
				_ = conn.Close()
			} else if _, err := io.WriteString(near, c.said); err != nil {
				t.Fatal(err)
			}
			_ = near.Close()
			<-served
			_ = b.gateway.Close() // all is told by then
			b.door.mu.Lock()
			defer b.door.mu.Unlock()
			if c.want == "" && len(b.door.failures) != 0 || c.want != "" && (len(b.door.failures) != 1 || !strings.Contains(b.door.failures[0].Reason, c.want)) {
				t.Errorf("on record is %+v", b.door.failures)
			}
		})
	}
}

// bufferedPair are the two ends of a connection that takes what is written before anybody reads it, as
// net.Pipe does not: of an alert during the other's flight both would wait until the handshake's time is over.
func bufferedPair(tb testing.TB) (near, far net.Conn) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		tb.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = near.Close() })
	return near, far
}
