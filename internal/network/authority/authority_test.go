package authority

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// open returns an authority in a new folder.
func open(t *testing.T) (*Authority, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func issue(t *testing.T, a *Authority, hosts ...string) Leaf {
	t.Helper()
	leaf, err := a.Certificate(t.Context(), hosts)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// forge makes a leaf that the authority would refuse to make: under its newest
// CA, for any hosts, as a thief of the key could.
func forge(t *testing.T, a *Authority, hosts ...string) Leaf {
	t.Helper()
	names, err := parseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := a.current.issueLeaf(names, leafLifetime, a.current.issuer.NotBefore.Add(2*backdate))
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func parse(t *testing.T, chain []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(chain)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// verifiers are the clients whose judgement counts.
func verifiers() map[string]func(t *testing.T, ca []byte, leaf Leaf, host string) error {
	return map[string]func(t *testing.T, ca []byte, leaf Leaf, host string) error{
		"go": verifyWithGo, "openssl": verifyWithOpenSSL, "python": verifyWithPython,
	}
}

func verifyWithGo(t *testing.T, ca []byte, leaf Leaf, host string) error {
	t.Helper()
	roots, sent := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	sent.AppendCertsFromPEM(leaf.ChainPEM)
	_, err := parse(t, leaf.ChainPEM).Verify(x509.VerifyOptions{Roots: roots, Intermediates: sent, DNSName: host})
	return err
}

func verifyWithOpenSSL(t *testing.T, ca []byte, leaf Leaf, host string) error {
	t.Helper()
	dir := t.TempDir()
	store(t, filepath.Join(dir, "ca.pem"), ca)
	store(t, filepath.Join(dir, "leaf.pem"), leaf.ChainPEM)
	check := []string{"-verify_hostname", host}
	if net.ParseIP(host) != nil {
		check = []string{"-verify_ip", host}
	}
	args := append([]string{
		"verify", "-x509_strict", "-purpose", "sslserver", "-no-CApath", "-no-CAstore",
		"-CAfile", filepath.Join(dir, "ca.pem"), "-untrusted", filepath.Join(dir, "leaf.pem"),
	}, append(check, filepath.Join(dir, "leaf.pem"))...)
	out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
}

// verifyWithPython makes a real connection, with python's ssl as the client.
func verifyWithPython(t *testing.T, ca []byte, leaf Leaf, host string) error {
	t.Helper()
	pair, err := tls.X509KeyPair(leaf.ChainPEM, leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	store(t, file, ca)
	const client = `
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
with socket.create_connection((sys.argv[2], int(sys.argv[3]))) as raw:
    with context.wrap_socket(raw, server_hostname=sys.argv[4]) as s:
        print(s.version())
`
	out, err := exec.CommandContext(t.Context(), "python3", "-c", client, file, u.Hostname(), u.Port(), host).CombinedOutput()
	if err != nil {
		return errors.New(string(out))
	}
	return nil
}

func store(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestClientsAccept is also the positive control of TestClientsRefuseForgeries.
func TestClientsAccept(t *testing.T) {
	t.Parallel()
	for name, verify := range verifiers() {
		for _, hosts := range [][]string{
			{"index.example", "files.example"},
			{"index.example:8443", "127.0.0.1:9000", "[::1]:9000"},
			{"127.0.0.1"},
			{"localhost", "INDEX.example."},
		} {
			t.Run(name+"/"+strings.Join(hosts, ","), func(t *testing.T) {
				t.Parallel()
				a, _ := open(t)
				leaf := issue(t, a, hosts...)
				for _, host := range hosts {
					names, err := parseHosts([]string{host})
					if err != nil {
						t.Fatal(err)
					}
					bare := strings.Join(names.names, "")
					if len(names.addresses) > 0 {
						bare = names.addresses[0].String()
					}
					if err := verify(t, a.CAPEM(), leaf, bare); err != nil {
						t.Errorf("%s: %v", bare, err)
					}
				}
			})
		}
	}
}

func TestClientsRefuseForgeries(t *testing.T) {
	t.Parallel()
	for name, verify := range verifiers() {
		for _, c := range []struct {
			made  []string // what the CA was made for
			forge string
		}{
			{[]string{"index.example"}, "bank.example"},
			{[]string{"index.example"}, "notindex.example"},
			{[]string{"index.example"}, "www.index.example"},
			{[]string{"index.example", "files.index.example"}, "www.files.index.example"},
			{[]string{"index.example"}, "10.0.0.1"},
			{[]string{"index.example"}, "::1"},
			{[]string{"127.0.0.1"}, "127.0.0.2"},
			{[]string{"127.0.0.1"}, "::1"},
			{[]string{"127.0.0.1"}, "bank.example"},
		} {
			t.Run(name+"/"+c.made[0]+"/"+c.forge, func(t *testing.T) {
				t.Parallel()
				a, _ := open(t)
				issue(t, a, c.made...)
				if err := verify(t, a.CAPEM(), forge(t, a, c.forge), c.forge); err == nil {
					t.Errorf("accepted a certificate for %s under a CA for %v", c.forge, c.made)
				}
				// Nor may a good name carry a bad one along.
				if err := verify(t, a.CAPEM(), forge(t, a, c.made[0], c.forge), c.made[0]); err == nil {
					t.Errorf("accepted a certificate that names %s too", c.forge)
				}
			})
		}
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	leaf := parse(t, issue(t, a, "index.example").ChainPEM)
	ca := parse(t, a.CAPEM())
	if got := leaf.NotAfter.Sub(leaf.NotBefore); got > leafLifetime+backdate {
		t.Errorf("a leaf lives %v", got)
	}
	if leaf.NotAfter.After(ca.NotAfter) || leaf.NotBefore.Before(ca.NotBefore) {
		t.Error("a leaf lives outside its CA's life")
	}
	if len(leaf.ExtKeyUsage) != 1 || leaf.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth || leaf.IsCA {
		t.Errorf("a leaf is for more than serving: %v", leaf.ExtKeyUsage)
	}
	if ca.MaxPathLen != 1 || ca.KeyUsage != x509.KeyUsageCertSign || len(ca.SubjectKeyId) == 0 {
		t.Errorf("root: path length %d, usage %b", ca.MaxPathLen, ca.KeyUsage)
	}
}

func TestGenerations(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	if a.CAPEM() != nil {
		t.Fatal("a CA before it is known what for")
	}
	first := issue(t, a, "index.example", "files.example")
	ca := a.CAPEM()
	issue(t, a, "files.example") // covered: the same CA
	if !bytes.Equal(ca, a.CAPEM()) {
		t.Error("a covered host made a new CA")
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	issue(t, again, "index.example")
	if !bytes.Equal(ca, again.CAPEM()) {
		t.Error("another start made a new CA")
	}
	issue(t, again, "index.example", "more.example")
	if bytes.Equal(ca, again.CAPEM()) {
		t.Error("a host that the CA does not cover made no new CA")
	}
	if _, err := os.Stat(filepath.Join(dir, "ca-1.key")); err != nil {
		t.Errorf("the old generation is gone: %v", err)
	}
	if err := verifyWithGo(t, ca, first, "files.example"); err != nil {
		t.Errorf("a live sandbox's trust broke: %v", err)
	}
	// Back to the first hosts: the newest that covers them still serves.
	issue(t, again, "more.example", "index.example")
	if n := len(again.known); n != 2 {
		t.Errorf("%d generations", n)
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	issue(t, a, "index.example")
	key := filepath.Join(dir, "ca-1.key")
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("key: %v %v", info.Mode(), err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644, 0o660} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err != nil {
		t.Errorf("positive control: %v", err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"empty certificate": func(t *testing.T, dir string) { t.Helper(); store(t, filepath.Join(dir, "ca-1.pem"), nil) },
		"no key": func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, "ca-1.key")); err != nil {
				t.Fatal(err)
			}
		},
		"another's key": func(t *testing.T, dir string) {
			t.Helper()
			b, other := open(t)
			issue(t, b, "index.example")
			raw, err := os.ReadFile(filepath.Join(other, "ca-1.key"))
			if err != nil {
				t.Fatal(err)
			}
			store(t, filepath.Join(dir, "ca-1.key"), raw)
		},
		"a link": func(t *testing.T, dir string) {
			t.Helper()
			key := filepath.Join(dir, "ca-1.key")
			if err := errors.Join(os.Rename(key, key+".moved"), os.Symlink(key+".moved", key)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, dir := open(t)
			issue(t, a, "index.example")
			spoil(t, dir)
			_, err := Open(dir)
			if _, ok := errors.AsType[*fault.Fault](err); !ok || !strings.Contains(err.Error(), "ca-1") {
				t.Errorf("not a sentence with the file's name: %v", err)
			}
		})
	}
}

func TestHalfWrittenIsIgnored(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	store(t, filepath.Join(dir, "ca-1.key"), []byte("half"))
	store(t, filepath.Join(dir, "ca-1.pem.new"), []byte("half"))
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	issue(t, b, "index.example")
	if _, err := Open(dir); err != nil {
		t.Error(err)
	}
	_ = a
}

func TestBadHosts(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	for _, hosts := range [][]string{nil, {""}, {"com"}, {"*.example"}, {"a b.example"}, {"-x.example"}, {"x..example"}, {strings.Repeat("a.", 140) + "example"}, {"index.example", "\n"}} {
		if _, err := a.Certificate(t.Context(), hosts); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %v", hosts, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Certificate(ctx, []string{"index.example"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
