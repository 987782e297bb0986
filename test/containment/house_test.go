package containment

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// listedHost is a name that a policy has, and that leads to a server of the test's own.
const listedHost = "listed.example"

// house is that server, over TLS and plain HTTP. What it is sent for another host, or with
// a token, has got out. A visitor that may come is known by a word.
type house struct {
	secure, plain *httptest.Server
	ca            string // the file with its certificate's authority

	mu      sync.Mutex // guards welcome
	welcome []string   // the paths that were asked for
}

func newHouse(t *testing.T, s *stage) *house {
	t.Helper()
	h := &house{}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what arrived of it
		if text := fmt.Sprint(r.Host, " ", r.RequestURI, " ", r.Header, " ", string(body)); r.Host != listedHost || strings.Contains(text, s.world.token) {
			s.seen.add("the listed host", "it was sent %s", text)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.welcome = append(h.welcome, r.URL.Path)
	})
	h.plain, h.secure = httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	h.secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	cert, ca := certified(t, listedHost)
	s.write(t, "house-ca.pem", string(ca), 0o644)
	h.ca = filepath.Join(s.dir, "house-ca.pem")
	h.secure.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
		if i.ServerName != listedHost {
			s.seen.add("the listed host", "it was greeted as %q", i.ServerName)
		}
		return nil, nil
	}}
	h.secure.StartTLS()
	t.Cleanup(h.plain.Close)
	t.Cleanup(h.secure.Close)
	return h
}

// certified is a certificate for a name, and the authority's own, in PEM.
func certified(t *testing.T, name string) (tls.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's own"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// config is what the daemon's configuration says of it.
func (h *house) config() string {
	return fmt.Sprintf("network:\n  hosts:\n    - { name: %s, port: 443, address: %q, ca_file: %q }\n    - { name: %s, port: 80, address: %q }\n",
		listedHost, h.secure.Listener.Addr(), h.ca, listedHost, h.plain.Listener.Addr())
}

func (h *house) welcomed(word string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.welcome, "/welcome/"+word)
}

// visit is what a law allows: the listed host is reached in every way that there is.
func (s *stage) visit(t *testing.T, b *sandbox) {
	t.Helper()
	var work [][]string
	words := map[string]string{}
	for name, args := range map[string][]string{
		"TLS":         {"hello", listedHost + ":443", listedHost, "welcome/WORD", "", listedHost},
		"HTTP":        {"proxy", listedHost + ":80", "host", listedHost, "welcome/WORD"},
		"CONNECT":     {"hello", listedHost + ":443", listedHost, "welcome/WORD", "connect", listedHost},
		"SOCKS":       {"hello", listedHost + ":443", listedHost, "welcome/WORD", "socks", listedHost},
		"a whole URL": {"proxy", "127.0.0.1:3128", "absolute", listedHost, "welcome/WORD"},
	} {
		words[name] = randomWord()
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "WORD", words[name])
		}
		work = append(work, args)
	}
	text, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	got := b.probe(t, manner{}, "batch", string(text))
	for name, word := range words {
		if !s.house.welcomed(word) {
			t.Errorf("INCONCLUSIVE: the listed host is not reached by %s either: %s", name, got.text)
		}
	}
	s.world.flush(t) // none of it is taken for what comes next
}
