package guest

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// systemBundles are where distributions keep their roots in one file.
func systemBundles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
		"/var/lib/ca-certificates/ca-bundle.pem",
	}
}

// trustCA has programs that start from now on trust another CA than Configure said.
func (a *Agent) trustCA(t *channel.Trust) error {
	if t == nil {
		return errors.New("a trust call needs its body")
	}
	return a.writeTrust(t.CAPEM)
}

// writeTrust writes the CA, and the template's roots with the CA after them. A program that looks
// at no variable reads the system's own files, so those have it, too: the bundle, and a file by its
// name's hash. They are the sandbox's, and no template has them.
func (a *Agent) writeTrust(ca []byte) error {
	if block, _ := pem.Decode(ca); block == nil || block.Type != "CERTIFICATE" {
		return errors.New("the installation's CA certificate is not PEM")
	}
	ca = append(bytes.TrimSpace(ca), '\n')
	before, _ := os.ReadFile(a.config.Root + channel.CAFile) // none at first
	system, bundle := a.systemRoots()
	bundle = withOurs(bundle, ca)
	if err := replaceFile(a.config.Root+channel.CAFile, ca); err != nil {
		return fmt.Errorf("write the CA: %w", err)
	}
	if err := replaceFile(a.config.Root+channel.BundleFile, bundle); err != nil {
		return fmt.Errorf("write the bundle of CAs: %w", err)
	}
	if system != "" {
		if err := replaceFile(a.config.Root+system, bundle); err != nil {
			return fmt.Errorf("write the system's bundle of CAs: %w", err)
		}
	}
	if err := a.writeHashed(before, ca); err != nil {
		return fmt.Errorf("write the CA to the system's folder of them: %w", err)
	}
	return a.writeJavaTrust(bundle)
}

// Between these lines is what was added to a template's roots; readers of PEM pass over them.
const (
	oursBegins = "# added at the sandbox's start: what its gateway shows\n"
	oursEnds   = "# end of what was added\n"
)

// withOurs is a bundle with the CA at its end.
func withOurs(roots, ca []byte) []byte {
	if len(roots) > 0 {
		roots = append(bytes.TrimSpace(roots), '\n')
	}
	return slices.Concat(roots, []byte(oursBegins), ca, []byte(oursEnds))
}

// withoutOurs is a bundle as it was before.
func withoutOurs(bundle []byte) []byte {
	for {
		before, rest, begins := bytes.Cut(bundle, []byte(oursBegins))
		_, after, ends := bytes.Cut(rest, []byte(oursEnds))
		if !begins || !ends {
			return bundle
		}
		bundle = slices.Concat(before, after)
	}
}

// systemRoots is the first bundle that the template has, as it has it, and where it lies; a
// template without one trusts only the installation's CA.
func (a *Agent) systemRoots() (path string, roots []byte) {
	for _, path := range systemBundles() {
		if roots, err := os.ReadFile(a.config.Root + path); err == nil && len(roots) > 0 {
			return path, withoutOurs(roots)
		}
	}
	return "", nil
}
