package tlshello_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress/tlshello"
)

// extension is one of a ClientHello, as bytes.
func extension(kind int, body ...byte) []byte {
	return append([]byte{byte(kind >> 8), byte(kind), byte(len(body) >> 8), byte(len(body))}, body...)
}

// serverName is the extension that names hosts.
func serverName(names ...string) []byte {
	var list []byte
	for _, n := range names {
		list = append(append(list, 0, byte(len(n)>>8), byte(len(n))), n...)
	}
	return extension(0, append([]byte{byte(len(list) >> 8), byte(len(list))}, list...)...)
}

// body is a ClientHello's with these extensions.
func body(extensions ...[]byte) []byte {
	all := bytes.Join(extensions, nil)
	b := append([]byte{3, 3}, make([]byte, 32)...)
	b = append(b, 0)                   // session
	b = append(b, 0, 2, 0x13, 1, 1, 0) // ciphers, compressions
	return append(append(b, byte(len(all)>>8), byte(len(all))), all...)
}

// client is a ClientHello in records of at most size bytes.
func client(body []byte, size int) []byte {
	m := append([]byte{1, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
	return inRecords(22, m, size)
}

func inRecords(kind byte, payload []byte, size int) []byte {
	var out []byte
	for len(payload) > 0 {
		n := min(size, len(payload))
		out = append(append(out, kind, 3, 1, byte(n>>8), byte(n)), payload[:n]...)
		payload = payload[n:]
	}
	return out
}

// read gives bytes to a Client in pieces.
func read(c *tlshello.Client, p []byte, piece int) (h tlshello.Hello, taken int, done bool, err error) {
	for !done && err == nil && taken < len(p) {
		var n int
		n, done, err = c.Take(p[taken:min(len(p), taken+piece)])
		taken += n
	}
	return c.Hello(), taken, done, err
}

func TestClientHellos(t *testing.T) {
	grease := extension(0x0a0a)
	for name, want := range map[string]struct {
		sent  []byte
		hello tlshello.Hello
	}{
		"one record":       {client(body(serverName("api.example")), 1<<14), tlshello.Hello{Name: "api.example"}},
		"bytewise records": {client(body(grease, serverName("api.example")), 1), tlshello.Hello{Name: "api.example"}},
		"capitals":         {client(body(serverName("API.Example")), 100), tlshello.Hello{Name: "api.example"}},
		"no name":          {client(body(grease), 100), tlshello.Hello{}},
		"no extensions":    {client(body()[:41], 100), tlshello.Hello{}},
		"60 KB":            {client(body(extension(21, make([]byte, 60_000)...), serverName("api.example")), 1<<14), tlshello.Hello{Name: "api.example"}},
		"hidden":           {client(body(serverName("api.example"), extension(0xfe0d, 0)), 100), tlshello.Hello{Name: "api.example", Encrypted: true}},
		"hidden, old":      {client(body(serverName("api.example"), extension(0xffce, 0)), 100), tlshello.Hello{Name: "api.example", Encrypted: true}},
	} {
		for _, piece := range []int{1, 7, 1 << 20} {
			sent := append(bytes.Clone(want.sent), "more"...)
			h, n, done, err := read(&tlshello.Client{}, sent, piece)
			if h != want.hello || !done || err != nil || n != len(want.sent) {
				t.Errorf("%s in pieces of %d: %+v after %d bytes of %d, done %v: %v", name, piece, h, n, len(want.sent), done, err)
			}
		}
	}
}

func TestWhatIsNoClientHello(t *testing.T) {
	good := body(serverName("api.example"))
	twice := append(serverName("api.example"), serverName("api.example")...)
	patched := func(at int, b byte) []byte {
		p := bytes.Clone(good)
		p[at] = b
		return client(p, 1<<14)
	}
	record := func(at int, b byte) []byte {
		p := client(good, 1<<14)
		p[at] = b
		return p
	}
	named := func(name string) []byte { return client(body(serverName(name)), 1<<14) }
	for name, sent := range map[string][]byte{
		"HTTP":                   []byte("GET / HTTP/1.1\r\nHost: api.example\r\n\r\n"),
		"SSH":                    []byte("SSH-2.0-x\r\n"),
		"SSLv2":                  {0x80, 0x2e, 1, 3, 1},
		"version of records":     record(1, 2),
		"empty record":           append([]byte{22, 3, 1, 0, 0}, client(good, 100)...),
		"long record":            {22, 3, 1, 0xff, 0xff},
		"another message":        record(5, 2),
		"an alert first":         append([]byte{21, 3, 1, 0, 2, 1, 0}, client(good, 100)...),
		"data first":             append(inRecords(23, []byte("early"), 100), client(good, 100)...),
		"data inside":            append(client(good, 20)[:25], inRecords(23, []byte("x"), 1)...),
		"too long":               client(body(extension(21, make([]byte, 65_000)...), serverName("api.example"), extension(22, make([]byte, 500)...))[:65_500], 1<<14),
		"a length beyond":        {22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff},
		"too long by frames":     client(body(extension(21, make([]byte, 20_000)...)), 1),
		"two in a record":        inRecords(22, append(client(good, 1<<14)[5:], client(good, 1<<14)[5:]...), 1<<14),
		"TLS of another version": patched(0, 2),
		"session":                patched(34, 33),
		"odd ciphers":            patched(36, 1),
		"no compression":         patched(39, 0),
		"extensions cut":         patched(42, good[42]+1),
		"extensions short":       patched(42, good[42]-1),
		"extension cut":          patched(46, good[46]+1),
		"two name extensions":    client(body(twice), 1<<14),
		"an extension twice":     client(body(extension(77), extension(77)), 1<<14),
		"two names":              client(body(serverName("api.example", "evil.example")), 1<<14),
		"no name in the list":    client(body(serverName()), 1<<14),
		"name of another kind":   client(body(extension(0, 0, 4, 1, 0, 1, 'a')), 1<<14),
		"bytes behind the list":  client(body(extension(0, 0, 4, 0, 0, 1, 'a', 0)), 1<<14),
		"empty name":             named(""),
		"trailing dot":           named("api.example."),
		"leading dot":            named(".api.example"),
		"NUL":                    named("api.example\x00.evil.example"),
		"space":                  named("api.example "),
		"userinfo":               named("api.example@evil.example"),
		"port":                   named("api.example:443"),
		"not ASCII":              named("apı.example"),
		"a letter like k":        named("\u212aa.example"),
		"long name":              named(strings.Repeat("a.", 127) + "example"),
	} {
		for _, piece := range []int{1, 1 << 20} {
			h, _, done, err := read(&tlshello.Client{}, sent, piece)
			if done || err == nil || tlshello.Sentence(err) == "" {
				t.Errorf("%s in pieces of %d: %+v, done %v: %v", name, piece, h, done, err)
			}
		}
	}
	// The control: the same without what is wrong.
	if h, _, done, err := read(&tlshello.Client{}, patched(0, 3), 1); !done || err != nil || h.Name != "api.example" {
		t.Errorf("%+v %v %v", h, done, err)
	}
}

func TestAnotherHello(t *testing.T) {
	second := client(body(serverName("api.example")), 50)
	change := []byte{20, 3, 3, 0, 1, 1}
	for name, sent := range map[string][]byte{
		"alone":               second,
		"after a change":      append(bytes.Clone(change), second...),
		"after early data":    append(append(inRecords(23, make([]byte, 3000), 1000), change...), second...),
		"data after a change": append(append(bytes.Clone(change), inRecords(23, make([]byte, 9), 9)...), second...),
	} {
		for _, piece := range []int{1, 1 << 20} {
			if h, n, done, err := read(tlshello.Again(), sent, piece); !done || err != nil || h.Name != "api.example" || n != len(sent) {
				t.Errorf("%s: %+v, done %v: %v", name, h, done, err)
			}
		}
	}
	for name, sent := range map[string][]byte{
		"two changes":      append(append(bytes.Clone(change), change...), second...),
		"a long change":    append([]byte{20, 3, 3, 0, 2, 1, 1}, second...),
		"an alert":         {21, 3, 3, 0, 2, 2, 40},
		"data inside":      append(bytes.Clone(second[:55]), inRecords(23, []byte("x"), 1)...),
		"a Finished":       inRecords(22, []byte{20, 0, 0, 1, 0}, 100),
		"much data before": append(inRecords(23, make([]byte, tlshello.MaxSize), 1<<14), second...),
	} {
		if h, _, done, err := read(tlshello.Again(), sent, 1<<20); done || err == nil {
			t.Errorf("%s: %+v, done %v", name, h, done)
		}
	}
}

// tape is a connection whose bytes are kept.
type tape struct {
	net.Conn
	mu   *sync.Mutex
	sent *[]byte
}

func (r tape) Write(p []byte) (int, error) {
	r.mu.Lock()
	*r.sent = append(*r.sent, p...)
	r.mu.Unlock()
	return r.Conn.Write(p)
}

// connection has two ends, which close with the test.
func connection(t *testing.T) (a, b net.Conn) {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var dialer net.Dialer
	if a, err = dialer.DialContext(t.Context(), "tcp", l.Addr().String()); err == nil {
		b, err = l.Accept()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) }) // one of them may be closed already
	return a, b
}

// handshake is one of real ends, as both sides sent it.
func handshake(t *testing.T, clientCurves, serverCurves []tls.CurveID, most uint16) (fromClient, fromServer []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"api.example"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a, b := connection(t)
	var mu sync.Mutex
	c := tls.Client(tape{a, &mu, &fromClient}, &tls.Config{ServerName: "api.example", InsecureSkipVerify: true, CurvePreferences: clientCurves, MaxVersion: most})
	s := tls.Server(tape{b, &mu, &fromServer}, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, CurvePreferences: serverCurves, SessionTicketsDisabled: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- s.HandshakeContext(ctx) }()
	if err := c.HandshakeContext(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	return fromClient, fromServer
}

// TestRealHandshakes: with and without post-quantum keys, with a retry, and of TLS 1.2.
func TestRealHandshakes(t *testing.T) {
	for name, c := range map[string]struct {
		client, server []tls.CurveID
		most           uint16
		retry          bool
	}{
		"as Go does it":     {nil, nil, 0, false},
		"no post-quantum":   {[]tls.CurveID{tls.X25519}, nil, 0, false},
		"a retry":           {[]tls.CurveID{tls.X25519, tls.CurveP384}, []tls.CurveID{tls.CurveP384}, 0, true},
		"TLS 1.2":           {nil, nil, tls.VersionTLS12, false},
		"post-quantum only": {[]tls.CurveID{tls.X25519MLKEM768}, nil, 0, false},
	} {
		fromClient, fromServer := handshake(t, c.client, c.server, c.most)
		for _, piece := range []int{1, 100, 1 << 20} {
			h, n, done, err := read(&tlshello.Client{}, fromClient, piece)
			if h.Name != "api.example" || h.Encrypted || !done || err != nil {
				t.Errorf("%s: %+v, done %v: %v", name, h, done, err)
			}
			s, said := tlshello.Server{}, false
			for at := 0; at < len(fromServer) && !said && err == nil; at += piece {
				said, err = s.Take(fromServer[at:min(len(fromServer), at+piece)])
			}
			if !said || err != nil || s.Retry() != c.retry {
				t.Errorf("%s: the server: done %v, retry %v: %v", name, said, s.Retry(), err)
			}
			if !c.retry {
				continue
			}
			if h, _, done, err := read(tlshello.Again(), fromClient[n:], piece); h.Name != "api.example" || !done || err != nil {
				t.Errorf("%s: the second: %+v, done %v: %v", name, h, done, err)
			}
		}
	}
}

func TestServers(t *testing.T) {
	greeting := append([]byte{2, 0, 0, 38, 3, 3}, make([]byte, 36)...)
	for name, c := range map[string]struct {
		sent []byte
		good bool
	}{
		"plain":              {inRecords(22, greeting, 100), true},
		"bytewise":           {inRecords(22, greeting, 1), true},
		"with more behind":   {inRecords(22, append(bytes.Clone(greeting), 11, 0, 0, 9), 1<<14), true},
		"after a warning":    {append([]byte{21, 3, 1, 0, 2, 1, 112}, inRecords(22, greeting, 100)...), true},
		"HTTP":               {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), false},
		"data":               {inRecords(23, greeting, 100), false},
		"another message":    {inRecords(22, []byte{11, 0, 0, 0}, 100), false},
		"a long one":         {[]byte{22, 3, 3, 0, 4, 2, 1, 0, 0}, false},
		"warnings for ever":  {bytes.Repeat([]byte{21, 3, 1, 0, 2, 1, 112}, 10_000), false},
		"a change of cipher": {[]byte{20, 3, 3, 0, 1, 1}, false},
	} {
		for _, piece := range []int{1, 1 << 20} {
			s, done, err := tlshello.Server{}, false, error(nil)
			for at := 0; at < len(c.sent) && !done && err == nil; at += piece {
				done, err = s.Take(c.sent[at:min(len(c.sent), at+piece)])
			}
			if done != c.good || (err == nil) != c.good || s.Retry() {
				t.Errorf("%s: done %v: %v", name, done, err)
			}
		}
	}
}
