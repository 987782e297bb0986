package discover

import (
	"bytes"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const maxBundle = 8 << 20

// systemBundles are the files that Go reads by itself; what they hold needs
// not be carried along.
func systemBundles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	}
}

// Roots are, in PEM, the certificates of the file that programs of this machine trust, with those of the
// file that SSL_CERT_FILE names in env in its place if there is one; without what skip says. nil: there are
// none, or they can't be read.
func Roots(env []string, skip func(path string) bool) []byte {
	candidates := systemBundles()
	if named := Value(env, "SSL_CERT_FILE"); named != "" && !skip(named) {
		candidates = append([]string{named}, candidates...)
	}
	for _, path := range candidates {
		var all bytes.Buffer
		if raw, err := ReadAtMost(path, maxBundle); err == nil {
			copyCertificates(&all, raw)
		}
		if all.Len() > 0 {
			return all.Bytes()
		}
	}
	return nil
}

// Bundle is a file or folder of extra roots, and who names it.
type Bundle struct {
	What string // who names it
	Path string // "": nobody does
}

// sharedBundles are those that the environment names to whatever speaks TLS.
func sharedBundles(env []string) []Bundle {
	return []Bundle{
		{"REQUESTS_CA_BUNDLE", Value(env, "REQUESTS_CA_BUNDLE")},
		{"CURL_CA_BUNDLE", Value(env, "CURL_CA_BUNDLE")},
		{"SSL_CERT_FILE", Value(env, "SSL_CERT_FILE")},
	}
}

// extraRoots collects the certificates of the bundles that a client is set up
// with, in configuration and environment, and those of more (PEM); nil if these
// are the system's.
func extraRoots(bundles []Bundle, more []byte) ([]byte, error) {
	var all bytes.Buffer
	var seen []string
	copyCertificates(&all, more)
	for _, named := range bundles {
		if named.Path == "" || slices.Contains(systemBundles(), named.Path) {
			continue
		}
		path, err := filepath.EvalSymlinks(named.Path)
		if err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "the CA bundle that %s names cannot be read", named.What)
		}
		if slices.Contains(systemBundles(), path) || slices.Contains(seen, path) {
			continue
		}
		seen = append(seen, path)
		if err := certificates(&all, path); err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "the CA bundle %s (%s) cannot be read", named.Path, named.What)
		}
	}
	if all.Len() == 0 {
		return nil, nil
	}
	return all.Bytes(), nil
}

// certificates copies the certificates of a file, or of each file of a folder;
// keys and comments stay behind.
func certificates(to *bytes.Buffer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*")); err != nil {
			return err
		}
	}
	for _, file := range files {
		raw, err := ReadAtMost(file, maxBundle)
		if err != nil {
			return err
		}
		copyCertificates(to, raw)
	}
	return nil
}

// copyCertificates copies the certificates of a text.
func copyCertificates(to *bytes.Buffer, raw []byte) {
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			return
		}
		if block.Type == "CERTIFICATE" {
			_ = pem.Encode(to, &pem.Block{Type: block.Type, Bytes: block.Bytes}) // to memory
		}
	}
}

// ReadAtMost reads a file of at most limit bytes.
func ReadAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		return nil, fault.Invalid("%s is larger than %d MB", path, limit>>20)
	}
	return raw, err
}
