package e2e

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
)

// hostLog is what comes to a host, a line each, in a file.
type hostLog struct {
	mu   sync.Mutex // guards the file
	path string
}

func (l *hostLog) write(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintf(f, format+"\n", args...)
	return err
}

// hosts NAME... serves hosts on loopback until the script's end, over TLS (port 443) and
// plain HTTP (port 80), and configures the installation so that the names lead there. The
// file ca.pem has its certificate's authority, by which the gateway knows them where it ends
// TLS, and requests what comes to them. They tell a client its credential in their answers.
func hosts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: hosts NAME...")
	}
	l := &hostLog{path: ts.MkAbs("requests")}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		if err := l.write("%s%s %s%s%s", method(r), scheme, r.Host, r.URL.Path, credential(r)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "you asked for %s %s%s%s", scheme, r.Host, r.URL.Path, credential(r))
	})
	cert, ca, err := certified(args...)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o644))
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.TLS = &tls.Config{
		Certificates:       []tls.Certificate{cert},
		GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) { return nil, l.write("hello %s", i.ServerName) },
	}
	secure.StartTLS()
	ts.Defer(plain.Close)
	ts.Defer(secure.Close)
	text := "network:\n  hosts:\n"
	for _, name := range args {
		text += fmt.Sprintf("    - { name: %q, port: 443, address: %q, ca_file: %q }\n    - { name: %q, port: 80, address: %q }\n",
			name, secure.Listener.Addr(), ts.MkAbs("ca.pem"), name, plain.Listener.Addr())
	}
	ts.Check(os.WriteFile(stateFile(ts, "config.yaml"), []byte(text), 0o600))
}

// plainRegistry sets PLAIN_REGISTRY to the host of the registry that this machine's npm is
// configured with, configures the installation so that it has another registry alone, writes
// a policy listed.yaml that lists the host, and trust.pem, which has the roots by which
// clients on this machine know it. Where the machine reaches it through a proxy that has an
// address of its own for it, the operator's configuration says so.
func plainRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: plainregistry")
	}
	ts.Check(ts.Exec("npm", "config", "get", "registry"))
	registry, err := url.Parse(strings.TrimSpace(ts.ReadFile("stdout")))
	ts.Check(err)
	name := registry.Hostname()
	addrs, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip4", name)
	ts.Check(err)
	text := "upstreams: [ { ecosystem: python, index: auto } ]\n"
	if one := addrs[0].Unmap(); address.ClassOf(one) != address.Public {
		text += fmt.Sprintf("network: { hosts: [ { name: %q, address: %q } ] }\n", name, one)
	}
	ts.Check(os.WriteFile(stateFile(ts, "config.yaml"), []byte(text), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("listed.yaml"), fmt.Appendf(nil, "network_allowlist: [ %q ]\n", name), 0o600))
	roots, err := os.ReadFile(cmp.Or(os.Getenv("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt"))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("trust.pem"), roots, 0o644))
	ts.Setenv("PLAIN_REGISTRY", name)
}

// method is that of a request which is no GET.
func method(r *http.Request) string {
	if r.Method == http.MethodGet {
		return ""
	}
	return r.Method + " "
}

// credential is what a request has for one, with a space before it.
func credential(r *http.Request) string {
	if _, password, given := r.BasicAuth(); given {
		return " password " + password
	}
	for _, name := range []string{"Authorization", "X-Api-Key"} {
		if text := r.Header.Get(name); text != "" {
			return " " + text
		}
	}
	return ""
}

// certified is a certificate for some names, and the authority's own, in PEM.
func certified(names ...string) (cert tls.Certificate, ca []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's own"}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return cert, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
