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
	"strings"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// generation is one CA. Its files are ca-N.key, the issuer's, and ca-N.root.pem,
// written first, and ca-N.pem, the issuer, whose presence makes it complete. It
// is never changed. One without a root is of before there were roots: its
// certificate was trusted by itself; nothing is issued under it any more.
type generation struct {
	number int
	root   *x509.Certificate // nil: see above
	issuer *x509.Certificate
	key    *ecdsa.PrivateKey // the issuer's
}

// newGeneration makes a CA that is good for these names and no others. After an
// old one, which covers the names, it goes on with its key and its name: what
// this issuer signs is then also good for sandboxes that trust the old
// certificate, and they need not be started anew.
func newGeneration(number int, names subjects, old *generation, now time.Time) (*generation, error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	of := cmp.Or(names.of, "installation")
	root, err := constrained(fmt.Sprintf("Cofferdam %s CA %d", of, number), names, now)
	if err != nil {
		return nil, err
	}
	root.MaxPathLen = 1
	if root, err = signCertificate(root, root, &rootKey.PublicKey, rootKey); err != nil {
		return nil, err
	}
	issuer, err := constrained(fmt.Sprintf("Cofferdam %s issuer %d", of, number), names, now)
	if err != nil {
		return nil, err
	}
	issuer.MaxPathLenZero = true
	g := &generation{number: number, root: root}
	if old != nil {
		g.key, issuer.NotAfter, issuer.Subject, issuer.SubjectKeyId = old.key, old.issuer.NotAfter, old.issuer.Subject, old.issuer.SubjectKeyId
	} else if g.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	// The root's key has no use after this, and is kept nowhere.
	g.issuer, err = signCertificate(issuer, root, &g.key.PublicKey, rootKey)
	return g, err
}

func signCertificate(template, parent *x509.Certificate, public *ecdsa.PublicKey, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// constrained is what root and issuer share. DNS names below a name are within
// its constraint by nature (RFC 5280, 4.2.1.10), so they are excluded, unless
// one of them is meant; and a kind of name that none is needed of is closed as a
// whole.
func constrained(name string, names subjects, now time.Time) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: fmt.Sprintf("%s (%s)", name, fmt.Sprintf("%032x", serial)[:8])},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(caLifetime),
		KeyUsage:     x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		BasicConstraintsValid: true, IsCA: true,

		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         names.permitted(),
		ExcludedDNSDomains:          names.notMeant(),
		PermittedIPRanges:           singles(names.addresses),
	}
	if len(names.names)+len(names.below) == 0 {
		template.PermittedDNSDomains = []string{"none.invalid"}
	}
	if len(names.addresses) == 0 {
		template.ExcludedIPRanges = []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
			{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		}
	}
	return template, nil
}

// permitted are the names, and the domains of which only what is below is meant:
// ".a.example".
func (s subjects) permitted() []string {
	all := slices.Clone(s.names)
	for _, below := range s.below {
		all = append(all, "."+below)
	}
	return all
}

// notMeant are the domains below names that no name is meant of: ".a.example". A domain
// that lies below one which all names are meant of is none of them: its names are meant,
// too, and rustls refuses a leaf of "*.example" for each domain that is excluded below.
func (s subjects) notMeant() []string {
	var domains []string
	for _, name := range s.names {
		below := "." + name
		if !s.meansAllBelow(name) && !slices.ContainsFunc(s.permitted(), func(n string) bool { return strings.HasSuffix(n, below) && n != below }) {
			domains = append(domains, below)
		}
	}
	return domains
}

// meansAllBelow tells whether every name below a domain is meant.
func (s subjects) meansAllBelow(domain string) bool {
	return slices.ContainsFunc(slices.Concat(s.above, s.below), func(above string) bool {
		return domain == above || strings.HasSuffix(domain, "."+above)
	})
}

// singles makes a range of one address of each.
func singles(addresses []net.IP) []*net.IPNet {
	var ranges []*net.IPNet
	for _, ip := range addresses {
		ranges = append(ranges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	return ranges
}

// coversNames says whether each of the names was named when the CA was made.
func (g *generation) coversNames(names subjects) bool {
	for _, name := range names.permitted() {
		if !slices.Contains(g.issuer.PermittedDNSDomains, name) {
			return false
		}
	}
	for _, ip := range names.addresses {
		if !slices.ContainsFunc(g.issuer.PermittedIPRanges, func(n *net.IPNet) bool { return n.IP.Equal(ip) }) {
			return false
		}
	}
	return !slices.ContainsFunc(g.issuer.ExcludedDNSDomains, func(excluded string) bool {
		return names.meansAllBelow(strings.TrimPrefix(excluded, "."))
	})
}

func (g *generation) filePaths(dir string) (issuer, root, key string) {
	base := filepath.Join(dir, "ca-"+strconv.Itoa(g.number))
	return base + ".pem", base + ".root.pem", base + ".key"
}

// writeFiles stores a new generation: the key and the root, durably, and only then
// the issuer.
func (g *generation) writeFiles(dir string) error {
	certPath, rootPath, keyPath := g.filePaths(dir)
	keyPEM, err := encodeKey(g.key)
	if err != nil {
		return err
	}
	// A key without a certificate is what an interrupted write left: nobody's.
	if err := os.Remove(keyPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.ErrUnavailable, err, "the certificate authority cannot be stored in %s", dir)
	}
	// In this order: the issuer is what makes a generation.
	for _, file := range []struct {
		path string
		raw  []byte
	}{{keyPath, keyPEM}, {rootPath, encodeCertificate(g.root)}, {certPath, encodeCertificate(g.issuer)}} {
		if err := atomicfile.Replace(file.path, file.raw, 0o600); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the certificate authority cannot be stored in %s", dir)
		}
	}
	return nil
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
	certPath, rootPath, keyPath := g.filePaths(dir)
	if err := checkSecret(keyPath); err != nil {
		return nil, err
	}
	rawKey, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, damaged(certPath, err)
	}
	rawIssuer, err := os.ReadFile(certPath)
	if err != nil {
		return nil, damaged(certPath, err)
	}
	rawRoot, err := os.ReadFile(rootPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, damaged(rootPath, err)
	}
	if err := g.decodeFiles(rawIssuer, rawRoot, rawKey); err != nil {
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

// decodeFiles reads a generation's files; without a root it must be an old one.
func (g *generation) decodeFiles(rawIssuer, rawRoot, rawKey []byte) (err error) {
	if g.issuer, err = decodeCA(rawIssuer); err != nil {
		return err
	}
	block, _ := pem.Decode(rawKey)
	if block == nil {
		return errors.New("no PEM block")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(g.issuer.PublicKey) {
		return errors.New("the key is not the certificate's")
	}
	g.key = key
	if rawRoot == nil {
		return g.issuer.CheckSignatureFrom(g.issuer)
	}
	if g.root, err = decodeCA(rawRoot); err != nil {
		return err
	}
	if key.PublicKey.Equal(g.root.PublicKey) {
		return errors.New("the key is the root's, which is to be nowhere")
	}
	return g.issuer.CheckSignatureFrom(g.root)
}

func decodeCA(raw []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	if !certificate.IsCA || !certificate.PermittedDNSDomainsCritical {
		return nil, errors.New("the certificate is no constrained CA")
	}
	return certificate, nil
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
