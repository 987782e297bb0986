package guest

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
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

// trust has programs that start from now on trust another CA than Configure said.
func (a *Agent) trust(t *channel.Trust) error {
	if t == nil {
		return errors.New("a trust call needs its body")
	}
	return a.writeTrust(t.CAPEM)
}

// writeTrust writes the CA, and the template's roots with the CA after them.
func (a *Agent) writeTrust(ca []byte) error {
	if block, _ := pem.Decode(ca); block == nil || block.Type != "CERTIFICATE" {
		return errors.New("the installation's CA certificate is not PEM")
	}
	ca = append(bytes.TrimSpace(ca), '\n')
	bundle := a.systemRoots()
	if len(bundle) > 0 {
		bundle = append(bytes.TrimSpace(bundle), '\n')
	}
	bundle = append(bundle, ca...)
	if err := replaceFile(a.config.Root+channel.CAFile, ca); err != nil {
		return fmt.Errorf("write the CA: %w", err)
	}
	if err := replaceFile(a.config.Root+channel.BundleFile, bundle); err != nil {
		return fmt.Errorf("write the bundle of CAs: %w", err)
	}
	return a.writeJavaTrust(bundle)
}

// systemRoots is the first bundle that the template has; a template without
// one trusts only the installation's CA.
func (a *Agent) systemRoots() []byte {
	for _, path := range systemBundles() {
		if roots, err := os.ReadFile(a.config.Root + path); err == nil && len(roots) > 0 {
			return roots
		}
	}
	return nil
}
