//go:build long

package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// visit is a connection that a client is to judge.
type visit struct {
	what string
	ca   []byte
	leaf Leaf
	host string
	good bool
}

// serveLeaf answers with a leaf until the test ends, and returns the port.
func serveLeaf(t *testing.T, leaf Leaf) string {
	t.Helper()
	pair, err := tls.X509KeyPair(leaf.ChainPEM, leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// forgeCommonName makes a leaf without alternative names, which some clients
// then take the common name for.
func forgeCommonName(t *testing.T, a *Authority, host string) Leaf {
	t.Helper()
	g := a.current
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := newSerial()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := signCertificate(&x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, NotBefore: g.issuer.NotBefore, NotAfter: g.issuer.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}, g.issuer, &key.PublicKey, g.key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	chain := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}), encodeCertificate(g.issuer)...)
	return Leaf{ChainPEM: chain, KeyPEM: keyPEM}
}

// visits are what every client is to take, and what it is to refuse.
func visits(t *testing.T) []visit {
	t.Helper()
	a, _ := open(t)
	good := issue(t, a, "index.example", "files.example", "127.0.0.1")
	all := []visit{
		{"the name", a.CAPEM(), good, "index.example", true},
		{"another name", a.CAPEM(), good, "files.example", true},
		{"the address", a.CAPEM(), good, "127.0.0.1", true},
		{"a name that it has not", a.CAPEM(), good, "bank.example", false},
	}
	for _, host := range []string{"bank.example", "notindex.example", "www.index.example", "127.0.0.2"} {
		all = append(all, visit{"forged", a.CAPEM(), forge(t, a, host), host, false})
		all = append(all, visit{"forged beside the name", a.CAPEM(), forge(t, a, "index.example", host), host, false})
	}
	all = append(all, visit{"forged without alternative names", a.CAPEM(), forgeCommonName(t, a, "bank.example"), "bank.example", false})
	for _, v := range slices.Concat(hostVisits(t), domainVisits(t)) {
		all = append(all, visit(v))
	}
	return append(all, upgraded(t)...)
}

// upgraded are visits to an installation whose CA is of before there were roots.
func upgraded(t *testing.T) []visit {
	t.Helper()
	dir := t.TempDir()
	before := oldCA(t, dir, "index.example")
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	leaf := issue(t, a, "index.example")
	return []visit{
		{"trust of before", before, leaf, "index.example", true},
		{"trust of now", a.CAPEM(), leaf, "index.example", true},
		{"forged with the old key, trust of now", a.CAPEM(), forge(t, a, "bank.example"), "bank.example", false},
	}
}

// judged has a client make the visits, and returns what it says of each.
func judged(t *testing.T, all []visit, client ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var in strings.Builder
	for i, v := range all {
		ca := filepath.Join(dir, fmt.Sprintf("ca-%d.pem", i))
		store(t, ca, v.ca)
		fmt.Fprintf(&in, "%s %s %s\n", ca, serveLeaf(t, v.leaf), v.host)
	}
	cmd := exec.CommandContext(t.Context(), client[0], client[1:]...)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s (scripts/deps long installs it)", client, err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(all) {
		t.Fatalf("%v answers %d of %d: %s", client, len(lines), len(all), out)
	}
	return lines
}

// installPython makes an environment with packages of the registry and returns its
// interpreter.
func installPython(t *testing.T, packages ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "venv")
	python := filepath.Join(dir, "bin", "python")
	for _, args := range [][]string{
		{"python3", "-m", "venv", dir},
		append([]string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, packages...),
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	return python
}

// TestMoreClients: Java, Node and what uses rustls judge as the others do. pyqwest is what
// E2B's newest SDK speaks by.
func TestMoreClients(t *testing.T) {
	t.Parallel()
	python := installPython(t, "pyqwest", "uv")
	for name, client := range map[string][]string{
		"java":    {"java", filepath.Join("testdata", "Verify.java")},
		"node":    {"node", filepath.Join("testdata", "verify.js")},
		"pyqwest": {python, filepath.Join("testdata", "verify_rustls.py")},
		"uv":      {python, filepath.Join("testdata", "verify_uv.py")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := visits(t)
			for i, answer := range judged(t, all, client...) {
				if v := all[i]; (answer == "taken") != v.good {
					t.Errorf("%s, %s: %s", v.what, v.host, answer)
				}
			}
		})
	}
}

// TestJavaBelievesRoots is the control of TestMoreClients: Java takes any name
// from a CA whose key signs leaves, whatever its constraints are.
func TestJavaBelievesRoots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := oldCA(t, dir, "index.example")
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a.current = a.known[0]
	leaf := forge(t, a, "bank.example")
	all := []visit{{"forged with a root's key", before, leaf, "bank.example", true}}
	if answer := judged(t, all, "java", filepath.Join("testdata", "Verify.java")); answer[0] != "taken" {
		t.Errorf("Java looks at a root's constraints, so the others prove nothing: %s", answer[0])
	}
}
