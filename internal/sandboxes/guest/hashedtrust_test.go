package guest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// authority is the certificate of a CA.
func authority(t *testing.T, name pkix.Name) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: name, NotBefore: time.Unix(1e9, 0), NotAfter: time.Unix(9e9, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestNameHash: the hashes are those that openssl x509 -subject_hash prints for such names.
func TestNameHash(t *testing.T) {
	t.Parallel()
	for want, name := range map[string]pkix.Name{
		"7eb1da59": {CommonName: "Cofferdam"},
		"3c96a2bc": {CommonName: "  Two   Spaces and CAPITALS ", Organization: []string{"Gr\u00fc\u00dfe \u00c4", "b*"}, Country: []string{"DE"}, SerialNumber: "7"},
		"eea339da": {},
	} {
		if got, ok := nameHash(authority(t, name)); !ok || got != want {
			t.Errorf("%+v: %q, not %q", name, got, want)
		}
	}
	if got, ok := nameHash([]byte(testCA)); ok {
		t.Errorf("what is no certificate has the hash %q", got)
	}
}

// TestTheFolderOfCAs has the one of now beside the template's own, and where there is no
// folder none is made.
func TestTheFolderOfCAs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, folder := New(Config{Root: root}), filepath.Join(root, hashedFolder)
	one, other := authority(t, pkix.Name{CommonName: "one"}), authority(t, pkix.Name{CommonName: "other"})
	if err := a.writeTrust(one); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Fatal("a folder was made")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	taken, _ := nameHash(one)
	if err := os.WriteFile(filepath.Join(folder, taken+".0"), []byte("the template's"), 0o600); err != nil {
		t.Fatal(err)
	}
	free, _ := nameHash(other)
	for _, step := range []struct {
		ca   []byte
		want []string
	}{
		{one, []string{taken + ".0", taken + ".1"}},
		{one, []string{taken + ".0", taken + ".1"}},
		{other, []string{taken + ".0", free + ".0"}},
		{one, []string{taken + ".0", taken + ".1"}},
	} {
		if err := a.writeTrust(step.ca); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, file := range files {
			got = append(got, file.Name())
		}
		slices.Sort(step.want)
		if !slices.Equal(got, step.want) {
			t.Errorf("there are %q, not %q", got, step.want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(folder, taken+".0")); err != nil || string(got) != "the template's" {
		t.Errorf("the template's own is %q, %v", got, err)
	}
}

// TestAFolderOfCAsElsewhere: what a link leads to is not the template's, and is left alone; a
// folder that can't be looked at is an error.
func TestAFolderOfCAsElsewhere(t *testing.T) {
	t.Parallel()
	ca := authority(t, pkix.Name{CommonName: "one"})
	for name, link := range map[string]string{"the folder": "certs", "what it lies in": "."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, mounted := t.TempDir(), t.TempDir()
			var said bytes.Buffer
			a := New(Config{Root: root, Log: slog.New(slog.NewTextHandler(&said, nil))})
			at := filepath.Join(root, "etc/ssl", link)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Mkdir(filepath.Join(mounted, "certs"), 0o755), os.Symlink(mounted, at)); err != nil {
				t.Fatal(err)
			}
			if err := a.writeHashed(nil, ca); err != nil {
				t.Fatal(err)
			}
			for _, folder := range []string{mounted, filepath.Join(mounted, "certs")} {
				files, err := filepath.Glob(filepath.Join(folder, "*.0"))
				if err != nil || len(files) > 0 {
					t.Errorf("%s has %q, %v", folder, files, err)
				}
			}
			if !strings.Contains(said.String(), at) {
				t.Errorf("the log says %q", said.String())
			}
		})
	}
	root := t.TempDir()
	a := New(Config{Root: filepath.Join(root, strings.Repeat("x", 300))}) // no name is that long
	if err := a.writeHashed(nil, ca); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what can't be looked at: %v", err)
	}
}
