package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// certificates are those of a PEM text.
func certificates(t *testing.T, text []byte) []*x509.Certificate {
	t.Helper()
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// TestChain: what is sent is a leaf and a constrained issuer, which the root has
// signed; and no key on the disk is the root's.
func TestChain(t *testing.T) {
	t.Parallel()
	a, dir := open(t)
	leaf := issue(t, a, "index.example", "files.index.example", "127.0.0.1")
	sent, roots := certificates(t, leaf.ChainPEM), certificates(t, a.CAPEM())
	if len(sent) != 2 || len(roots) != 1 {
		t.Fatalf("%d certificates are sent, and %d are trusted", len(sent), len(roots))
	}
	issuer, root := sent[1], roots[0]
	if err := errors.Join(sent[0].CheckSignatureFrom(issuer), issuer.CheckSignatureFrom(root), root.CheckSignatureFrom(root)); err != nil {
		t.Error(err)
	}
	if issuer.CheckSignatureFrom(issuer) == nil || bytes.Equal(issuer.RawSubject, root.RawSubject) {
		t.Error("the issuer is a root of its own")
	}
	if !issuer.MaxPathLenZero || root.MaxPathLen != 1 {
		t.Errorf("path lengths: %d, %d", issuer.MaxPathLen, root.MaxPathLen)
	}
	for name, c := range map[string]*x509.Certificate{"issuer": issuer, "root": root} {
		if !c.PermittedDNSDomainsCritical || !slices.Equal(c.PermittedDNSDomains, []string{"files.index.example", "index.example"}) ||
			!slices.Equal(c.ExcludedDNSDomains, []string{".files.index.example"}) || len(c.PermittedIPRanges) != 1 {
			t.Errorf("the %s's constraints: %v, excluded %v", name, c.PermittedDNSDomains, c.ExcludedDNSDomains)
		}
	}
	checkNoRootKey(t, dir, a.CAPEM(), leaf)
}

// checkNoRootKey reads every file of a folder, and a leaf, for the root's key.
func checkNoRootKey(t *testing.T, dir string, ca []byte, leaf Leaf) {
	t.Helper()
	texts := [][]byte{leaf.KeyPEM, leaf.ChainPEM}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, raw)
	}
	root, keys := certificates(t, ca)[0], 0
	for _, text := range texts {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				continue
			}
			if keys++; parsed.(*ecdsa.PrivateKey).PublicKey.Equal(root.PublicKey) {
				t.Error("the root's key is kept")
			}
		}
	}
	if keys < 2 { // the issuer's and the leaf's
		t.Errorf("%d keys were looked at", keys)
	}
}

// TestBelow: a domain that every name is meant of is not closed below.
func TestBelow(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	issue(t, a, "ports.example") // closed below
	leaf, err := a.Below(t.Context(), []string{"localhost"}, "Ports.example.")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.known) != 2 {
		t.Errorf("%d generations", len(a.known))
	}
	for name, verify := range verifiers() {
		for host, good := range map[string]bool{"8080-x.ports.example": true, "localhost": true, "a.b.ports.example": false, "bank.example": false} {
			if err := verify(t, a.CAPEM(), leaf, host); (err == nil) != good {
				t.Errorf("%s, %s: %v", name, host, err)
			}
		}
		if verify(t, a.CAPEM(), forge(t, a, "x.localhost"), "x.localhost") == nil {
			t.Errorf("%s takes a name below one that stands for itself", name)
		}
	}
}

// oldCA writes a CA of before there were roots: one certificate that signs
// itself and leaves, and its key.
func oldCA(t *testing.T, dir string, hosts ...string) (ca []byte) {
	t.Helper()
	names, err := parseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template, err := constrained("Cofferdam installation CA 1", names, time.Now().Add(-24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	template.MaxPathLenZero, template.ExcludedDNSDomains, template.SubjectKeyId = true, nil, []byte("as an older Go made it")
	c, err := signCertificate(template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	store(t, filepath.Join(dir, "ca-1.key"), keyPEM)
	store(t, filepath.Join(dir, "ca-1.pem"), encodeCertificate(c))
	return encodeCertificate(c)
}

// TestUpgrade: what trusts a CA of before goes on to work; what starts now
// trusts a root whose key is nowhere.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := oldCA(t, dir, "index.example", "files.example")
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a.CAPEM() != nil {
		t.Error("an old certificate is still given out")
	}
	leaf := issue(t, a, "files.example", "index.example")
	if bytes.Equal(before, a.CAPEM()) {
		t.Fatal("the old CA goes on")
	}
	for name, verify := range verifiers() {
		for trusted, ca := range map[string][]byte{"before": before, "now": a.CAPEM()} {
			for host, good := range map[string]bool{"index.example": true, "bank.example": false} {
				if err := verify(t, ca, leaf, host); (err == nil) != good {
					t.Errorf("%s, which trusts what it was given %s, and %s: %v", name, trusted, host, err)
				}
			}
		}
		if verify(t, a.CAPEM(), forge(t, a, "bank.example"), "bank.example") == nil {
			t.Errorf("%s: the old key vouches for others", name)
		}
	}
	checkNoRootKey(t, dir, a.CAPEM(), leaf)
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	issue(t, again, "index.example")
	if !bytes.Equal(a.CAPEM(), again.CAPEM()) {
		t.Error("another start makes another root")
	}
}

// TestUpgradeToOtherNames: an old CA that does not cover the names is left
// alone, and its key signs nothing.
func TestUpgradeToOtherNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := oldCA(t, dir, "index.example")
	a, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	leaf := issue(t, a, "index.example", "more.example")
	if err := verifyWithGo(t, before, leaf, "index.example"); err == nil {
		t.Error("the old key is used for names that it was not made for")
	}
	if err := verifyWithGo(t, a.CAPEM(), leaf, "more.example"); err != nil {
		t.Error(err)
	}
}
