// Package liar is a test fixture: a real HTTPS registry on loopback whose
// every answer is scripted, so that a suite can make an upstream lie in each
// way that one can. It knows no registry's protocol.
//
// A route is "host/path". Its replies are given in order and the last one for ever.
package liar

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is the registry.
type Server struct {
	CAPEM []byte // of the authority that signed its certificate

	http *httptest.Server
	port string
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	done chan struct{}

	mu        sync.Mutex // guards what follows
	scripts   map[string][]Reply
	otherwise Reply // of routes without a script
	requests  []Request
	names     map[string][]netip.Addr
}

// Request is what reached the registry.
type Request struct {
	Host   string // without the port
	Path   string // the raw request target
	Header http.Header
}

// New starts a registry that answers for the names over TLS; they resolve to
// it by its Resolver. It stops with the test.
func New(tb testing.TB, names ...string) *Server {
	tb.Helper()
	s := &Server{scripts: map[string][]Reply{}, otherwise: missing, names: map[string][]netip.Addr{}, done: make(chan struct{})}
	for _, n := range names {
		s.names[n] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	}
	s.makeCA(tb)
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serveReply))
	s.http.Config.ErrorLog = log.New(bytes.NewBuffer(nil), "", 0) // clients break connections on purpose
	s.http.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{s.Certify(tb, time.Hour, names...)}}
	s.http.StartTLS()
	_, s.port, _ = net.SplitHostPort(s.http.Listener.Addr().String())
	tb.Cleanup(func() {
		close(s.done) // ends the replies that drip or are silent
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Down stops the registry: connections are refused from now on.
func (s *Server) Down() {
	s.http.CloseClientConnections()
	_ = s.http.Listener.Close() // it may be closed already
}

// UseCertificate changes the certificate, e.g. for an expired one.
func (s *Server) UseCertificate(c tls.Certificate) { s.http.TLS.Certificates[0] = c }

// URL is https://name:port/path.
func (s *Server) URL(name, path string) string {
	return "https://" + net.JoinHostPort(name, s.port) + path
}

// Host is name:port.
func (s *Server) Host(name string) string { return net.JoinHostPort(name, s.port) }

// Script sets a route's replies, e.g. of "index.example/simple/foo/".
func (s *Server) Script(route string, replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[route] = replies
}

func missing(_ *Server, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// Answer sets the reply of all routes without a script, which is 404 until then.
func (s *Server) Answer(reply Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.otherwise = reply
}

// Requests are what reached the registry so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Count is how many requests a route had.
func (s *Server) Count(route string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Host+r.Path == route {
			n++
		}
	}
	return n
}

// Resolve makes a name resolve to addresses, e.g. to a metadata service's.
func (s *Server) Resolve(name string, addrs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = nil
	for _, a := range addrs {
		s.names[name] = append(s.names[name], netip.MustParseAddr(a))
	}
}

// LookupNetIP resolves the registry's names and no others.
func (s *Server) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.names[host]; len(a) > 0 {
		return a, nil
	}
	return nil, fmt.Errorf("no such host: %s", host)
}

func (s *Server) serveReply(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	s.mu.Lock()
	s.requests = append(s.requests, Request{Host: host, Path: path, Header: r.Header.Clone()})
	script := s.scripts[host+path]
	if len(script) > 1 {
		s.scripts[host+path] = script[1:]
	}
	otherwise := s.otherwise
	s.mu.Unlock()
	if len(script) == 0 {
		otherwise(s, w, r)
		return
	}
	script[0](s, w, r)
}

func (s *Server) makeCA(tb testing.TB) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "liar CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	if s.ca, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	s.key = key
	s.CAPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Certify makes a certificate of the registry's authority, valid from now for
// a while (a negative while: expired).
func (s *Server) Certify(tb testing.TB, valid time.Duration, names ...string) tls.Certificate {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(valid),
		DNSNames: names, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, s.ca, &key.PublicKey, s.key)
	if err != nil {
		tb.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
