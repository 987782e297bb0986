package daemon

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/network/authority"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// withConfig is a daemon of which only the listener's settings count.
func withConfig(t *testing.T, l config.Listen) *Daemon {
	t.Helper()
	return &Daemon{opts: Options{Paths: config.Paths{State: t.TempDir(), Runtime: t.TempDir()}, Config: config.Config{Listen: l}, Log: quiet()}}
}

// dialAs makes a connection under a name, trusting one CA.
func dialAs(t *testing.T, address, name string, ca []byte) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no CA")
	}
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	resp, err := client.Get("https://" + address)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// TestBundleOfOwnCA: SSL_CERT_FILE takes the place of all that a program trusts, so that the file for it has
// the system's CAs, too; at the next start it has them once.
func TestBundleOfOwnCA(t *testing.T) {
	system := filepath.Join(t.TempDir(), "company.pem")
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	must(t, os.WriteFile(system, append([]byte("a comment\n"), root...), 0o600))
	d := withConfig(t, config.Listen{Address: "127.0.0.1:0", TLS: config.TLS{Auto: true}, Domain: "sandbox.example"})
	t.Setenv("SSL_CERT_FILE", system)
	for range 2 {
		config, err := d.serverTLS(t.Context())
		must(t, err)
		l := listen(t)
		start(t, secure(l, config, quiet()), named("hello"))
		bundle, err := os.ReadFile(d.opts.Paths.APIBundle())
		must(t, err)
		if n := bytes.Count(bundle, []byte("BEGIN CERTIFICATE")); n != 2 {
			t.Errorf("%d certificates", n)
		}
		if err := dialAs(t, l.Addr().String(), "3000-sb1.sandbox.example", bundle); err != nil {
			t.Errorf("the daemon itself: %v", err)
		}
		if err := dialAs(t, other.Listener.Addr().String(), "example.com", bundle); err != nil {
			t.Errorf("the rest of the world: %v", err)
		}
	}
	if info, err := os.Stat(d.opts.Paths.APIBundle()); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info, err)
	}
	link := filepath.Join(t.TempDir(), "state")
	must(t, os.Symlink(filepath.Dir(d.opts.Paths.APIBundle()), link))
	for _, named := range []string{d.opts.Paths.APIBundle(), d.opts.Paths.APICA(), filepath.Join(link, filepath.Base(d.opts.Paths.APIBundle()))} {
		t.Setenv("SSL_CERT_FILE", named) // as in a shell that has read cofferdam env
		if _, err := d.serverTLS(t.Context()); err != nil {
			t.Fatal(err)
		}
		bundle, err := os.ReadFile(d.opts.Paths.APIBundle())
		must(t, err)
		ca, err := os.ReadFile(d.opts.Paths.APICA())
		must(t, err)
		if bytes.Count(bundle, bytes.TrimSpace(ca)) != 1 {
			t.Errorf("%s: it is in itself", named)
		}
	}
}

func TestOwnCertificate(t *testing.T) {
	t.Parallel()
	d := withConfig(t, config.Listen{Address: "127.0.0.1:0", TLS: config.TLS{Auto: true}, Domain: "sandbox.example", Names: []string{"api.example"}})
	var cas [][]byte
	for range 2 { // another start has the same CA
		config, err := d.serverTLS(t.Context())
		must(t, err)
		l := listen(t)
		start(t, secure(l, config, quiet()), named("hello"))
		ca, err := os.ReadFile(d.opts.Paths.APICA())
		must(t, err)
		cas = append(cas, ca)
		for name, trusted := range map[string]bool{
			"127.0.0.1": true, "localhost": true, "api.example": true, "sandbox.example": true, "3000-sb1.sandbox.example": true,
			"a.b.sandbox.example": false, "other.example": false, "192.0.2.1": false,
		} {
			if err := dialAs(t, l.Addr().String(), name, ca); (err == nil) != trusted {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if string(cas[0]) != string(cas[1]) {
		t.Error("another start made another CA")
	}
	if info, err := os.Stat(d.opts.Paths.APICA()); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("clients can't read the CA: %v %v", info.Mode(), err)
	}
}

func TestPlainHTTPIsForLoopback(t *testing.T) {
	t.Parallel()
	d := withConfig(t, config.Listen{Address: "0.0.0.0:0"})
	if err := d.openTCP(t.Context()); err == nil || !strings.Contains(err.Error(), "plain text") || len(d.serves) > 0 {
		t.Errorf("%v", err)
	}
}

// pair writes a certificate with its key, and returns what vouches for it.
func pair(t *testing.T, cert, key string) []byte {
	t.Helper()
	ca, err := authority.Open(t.TempDir())
	must(t, err)
	leaf, err := ca.Certificate(t.Context(), []string{"127.0.0.1"})
	must(t, err)
	must(t, os.WriteFile(cert, leaf.ChainPEM, 0o600))
	must(t, os.WriteFile(key, leaf.KeyPEM, 0o600))
	return ca.CAPEM()
}

func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &fileCertificate{cert: filepath.Join(dir, "c"), key: filepath.Join(dir, "k"), log: quiet()}
	if _, err := f.getCertificate(nil); err == nil {
		t.Fatal("no file is a certificate")
	}
	first := pair(t, f.cert, f.key)
	l := listen(t)
	start(t, secure(l, &tls.Config{GetCertificate: f.getCertificate, MinVersion: tls.VersionTLS12}, quiet()), named("hello"))
	must(t, dialAs(t, l.Addr().String(), "127.0.0.1", first))

	again := func(change func()) { // as if lookAgain had passed
		f.mu.Lock()
		defer f.mu.Unlock()
		change()
		f.looked = time.Time{}
		later := time.Now().Add(time.Minute)
		must(t, os.Chtimes(f.cert, later, later))
	}
	again(func() { must(t, os.WriteFile(f.cert, []byte("half a certi"), 0o600)) })
	if err := dialAs(t, l.Addr().String(), "127.0.0.1", first); err != nil {
		t.Errorf("a broken new certificate: %v", err)
	}
	var second []byte
	again(func() { second = pair(t, f.cert, f.key) })
	if err := dialAs(t, l.Addr().String(), "127.0.0.1", second); err != nil {
		t.Errorf("the new certificate is not shown: %v", err)
	}
	if dialAs(t, l.Addr().String(), "127.0.0.1", first) == nil {
		t.Error("the old certificate is shown")
	}
}

func TestKeysForEverybodyAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &fileCertificate{cert: filepath.Join(dir, "c"), key: filepath.Join(dir, "k"), log: quiet()}
	pair(t, f.cert, f.key)
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o644: false, 0o602: false} {
		must(t, os.Chmod(f.key, mode))
		if _, err := f.readFiles(); (err == nil) != good {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

func TestWhatTheCertificateNames(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{"192.0.2.7:1": "192.0.2.7", "[2001:db8::1]:1": "2001:db8::1", ":1": "127.0.0.1", "localhost:1": "localhost"} {
		hosts := apiHosts(config.Listen{Address: address})
		if !strings.Contains(" "+strings.Join(hosts, " ")+" ", " "+want+" ") {
			t.Errorf("%s: %v", address, hosts)
		}
		for _, h := range hosts {
			if ip := net.ParseIP(h); ip != nil && ip.IsUnspecified() {
				t.Errorf("%s: %v", address, hosts)
			}
		}
	}
}
