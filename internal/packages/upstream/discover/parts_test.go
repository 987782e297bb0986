package discover

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRootsAreCertificatesOnly(t *testing.T) {
	t.Parallel()
	const pemText = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	key := "-----BEGIN " + "PRIVATE KEY-----\nBBBB\n-----END " + "PRIVATE KEY-----\n"
	one := written(t, filepath.Join(t.TempDir(), "one.pem"), "# corp\n"+key+pemText)
	env := []string{"SSL_CERT_FILE=" + one, "REQUESTS_CA_BUNDLE=" + filepath.Dir(one)}
	raw, err := extraRoots(append([]Bundle{{"pip's cert", one}}, sharedBundles(env)...), nil)
	if err != nil || strings.Contains(string(raw), "PRIVATE") || strings.Count(string(raw), "BEGIN CERTIFICATE") != 2 {
		t.Errorf("%s %v", raw, err)
	}
	if raw, err := extraRoots(sharedBundles([]string{"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"}), nil); err != nil || raw != nil {
		t.Errorf("the system's own bundle is carried along: %d bytes %v", len(raw), err)
	}
}

func TestNetrc(t *testing.T) {
	t.Parallel()
	const text = `# comment
machine files.example login a password b
machine Index.Example
  login "me"
  account x
  password #hash
macdef init
machine trap.example login x password y

machine last.example password only
default login d password e
`
	for host, want := range map[string][2]string{
		"files.example": {"a", "b"}, "index.example": {"me", "#hash"}, "last.example": {"", "only"},
		"trap.example": {}, "other.example": {}, "": {},
	} {
		login, password := parseNetrc(text, host)
		if login != want[0] || password != want[1] {
			t.Errorf("%s: %q %q", host, login, password)
		}
	}
}

func FuzzNetrc(f *testing.F) {
	f.Add("machine a login b password c\nmacdef x\n\n", "a")
	f.Fuzz(func(_ *testing.T, text, host string) { parseNetrc(text, host) })
}

func written(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
