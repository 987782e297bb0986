package authority

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// generation is one CA. Its files are ca-N.key, written first, and ca-N.pem,
// whose presence makes it complete. It is never changed.
type generation struct {
	number      int
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// newGeneration makes a CA that is good for these names and no others: DNS
// names below them are within a constraint by its nature (RFC 5280, 4.2.1.10),
// and a kind of name that none is needed of is closed as a whole.
func newGeneration(number int, names subjects, now time.Time) (*generation, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: fmt.Sprintf("Cofferdam installation CA %d (%s)", number, serial.Text(16)[:8])},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(caLifetime),
		KeyUsage:     x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,

		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         names.names,
		PermittedIPRanges:           singles(names.addresses),
	}
	if len(names.names) == 0 {
		template.PermittedDNSDomains = []string{"none.invalid"}
	}
	if len(names.addresses) == 0 {
		template.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &generation{number, certificate, key}, nil
}

// singles makes a range of one address of each.
func singles(addresses []net.IP) []*net.IPNet {
	var ranges []*net.IPNet
	for _, ip := range addresses {
		ranges = append(ranges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	return ranges
}

// covers says whether each of the names was named when the CA was made.
func (g *generation) covers(names subjects) bool {
	for _, name := range names.names {
		if !slices.Contains(g.certificate.PermittedDNSDomains, name) {
			return false
		}
	}
	for _, ip := range names.addresses {
		if !slices.ContainsFunc(g.certificate.PermittedIPRanges, func(n *net.IPNet) bool { return n.IP.Equal(ip) }) {
			return false
		}
	}
	return true
}

func (g *generation) paths(dir string) (certificate, key string) {
	base := filepath.Join(dir, "ca-"+strconv.Itoa(g.number))
	return base + ".pem", base + ".key"
}

// write stores a new generation: the key, durably, and only then the certificate.
func (g *generation) write(dir string) error {
	certPath, keyPath := g.paths(dir)
	keyPEM, err := encodeKey(g.key)
	if err != nil {
		return err
	}
	// A key without a certificate is what an interrupted write left: nobody's.
	if err := os.Remove(keyPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.ErrUnavailable, err, "the certificate authority cannot be stored in %s", dir)
	}
	if err := errors.Join(create(keyPath, keyPEM), create(certPath+".new", encodeCertificate(g.certificate))); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the certificate authority cannot be stored in %s", dir)
	}
	if err := os.Rename(certPath+".new", certPath); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the certificate authority cannot be stored in %s", dir)
	}
	return nil
}

// create writes a file that only its owner may read.
func create(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}

// certificateFile matches a complete generation's certificate.
var certificateFile = regexp.MustCompile(`^ca-([1-9][0-9]{0,5})\.pem$`)

// readGenerations returns all complete generations, oldest first.
func readGenerations(dir string) ([]*generation, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the folder %s of the certificate authority cannot be read", dir)
	}
	var all []*generation
	for _, e := range entries {
		m := certificateFile.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		number, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		g, err := readGeneration(dir, number)
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b *generation) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

func readGeneration(dir string, number int) (*generation, error) {
	g := &generation{number: number}
	certPath, keyPath := g.paths(dir)
	if err := checkSecret(keyPath); err != nil {
		return nil, err
	}
	rawKey, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, damaged(certPath, err)
	}
	rawCert, err := os.ReadFile(certPath)
	if err != nil {
		return nil, damaged(certPath, err)
	}
	if g.certificate, g.key, err = decode(rawCert, rawKey); err != nil {
		return nil, damaged(certPath, err)
	}
	return g, nil
}

// checkSecret refuses a key that others can read or that is another user's.
func checkSecret(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return damaged(path, err)
	}
	if !info.Mode().IsRegular() {
		return fault.New(fault.ErrForbidden, "the CA's key %s is not a plain file: put it back or remove it with its .pem, and a new CA is made", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fault.New(fault.ErrForbidden, "the CA's key %s can be read by others (mode %04o): remove it with its .pem, and a new CA is made; or chmod 600 it, if you know that nobody read it", path, info.Mode().Perm())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fault.New(fault.ErrForbidden, "the CA's key %s belongs to user %d, and this is user %d: give it back to its owner", path, st.Uid, os.Geteuid())
	}
	return nil
}

func damaged(path string, err error) error {
	return fault.Wrap(fault.ErrUnavailable, err, "the certificate authority %s is damaged: remove its .pem and .key, and a new one is made", path)
}

func decode(rawCert, rawKey []byte) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certBlock, _ := pem.Decode(rawCert)
	keyBlock, _ := pem.Decode(rawKey)
	if certBlock == nil || keyBlock == nil {
		return nil, nil, errors.New("no PEM block")
	}
	certificate, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(certificate.PublicKey) {
		return nil, nil, errors.New("the key is not the certificate's")
	}
	if !certificate.IsCA || !certificate.PermittedDNSDomainsCritical {
		return nil, nil, errors.New("the certificate is no constrained CA")
	}
	return certificate, key, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func encodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}
