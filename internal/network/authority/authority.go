// Package authority is the installation's own certificate authorities: the
// gateway answers for the registries' names with certificates of one, which
// sandboxes are born trusting; the API may answer with those of another, which
// clients are told to trust.
//
// A generation is a root, which sandboxes trust, and an issuer, which the root has signed and which
// signs leaves. Both are critically constrained to the names that they were made for, so that
// whoever steals the issuer's key can impersonate those registries to this installation's sandboxes
// and nobody to anybody else. The root's key signs the issuer and is kept nowhere: Java does not
// look at the constraints of what it trusts, only at those of what is below it. The gateway shows a
// leaf with the issuer. The key of an issuer never leaves its folder; a leaf's key is made for each
// leaf, and only the gateway gets it.
package authority

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const (
	caLifetime   = 5 * 365 * 24 * time.Hour
	leafLifetime = 90 * 24 * time.Hour
	// The leaves of hosts come and go with their connections.
	hostLeafLifetime = 24 * time.Hour
	// A sandbox's clock may be a little behind.
	backdate = time.Hour
)

// Leaf is a certificate with its chain (leaf first, then its issuer, and not the
// root) and key.
type Leaf struct {
	ChainPEM []byte
	KeyPEM   []byte
}

// Authority issues leaves. Safe for concurrent use in one process; the folder
// belongs to one process at a time, which the daemon's lock sees to.
type Authority struct {
	dir string

	mu      sync.Mutex // guards all below
	known   []*generation
	current *generation // nil until there is one
}

// Open reads what is in dir, which is made (0700) if missing. A key that
// others can read is refused: it must be taken for stolen.
func Open(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the folder %s of the certificate authority cannot be made", dir)
	}
	known, err := readGenerations(dir)
	if err != nil {
		return nil, err
	}
	a := &Authority{dir: dir, known: known}
	if n := len(known); n > 0 && known[n-1].root != nil {
		a.current = known[n-1]
	}
	return a, nil
}

// Check reads what a folder of Open's holds, and changes nothing; nil if it is not
// there yet.
func Check(dir string) error {
	_, err := readGenerations(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// CAPEM returns the current root's certificate, nil before the first
// Certificate. It is the one that the last leaf was issued under.
func (a *Authority) CAPEM() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.current == nil {
		return nil
	}
	return encodeCertificate(a.current.root)
}

// Certificate issues a leaf for exactly these hosts (names or addresses, a
// port is ignored), valid for 90 days. If no generation covers them, a new one
// is made and becomes current; older ones stay, since sandboxes that live
// trust them.
func (a *Authority) Certificate(ctx context.Context, hosts []string) (Leaf, error) {
	return a.issueLeaf(ctx, hosts, "")
}

// Below issues a leaf as Certificate does, which is good for the domain, too, and
// for every name one label below it.
func (a *Authority) Below(ctx context.Context, hosts []string, domain string) (Leaf, error) {
	return a.issueLeaf(ctx, append(slices.Clone(hosts), domain), domain)
}

// issueLeaf makes a leaf; above "" is no wildcard.
func (a *Authority) issueLeaf(ctx context.Context, hosts []string, above string) (Leaf, error) {
	names, err := parseHosts(hosts)
	if err != nil {
		return Leaf{}, err
	}
	if err := ctx.Err(); err != nil {
		return Leaf{}, err
	}
	if above != "" {
		names.above = []string{strings.ToLower(strings.TrimSuffix(above, "."))}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	g, err := a.covering(names)
	if err != nil {
		return Leaf{}, err
	}
	leaf, err := g.issueLeaf(names.withBelow(), leafLifetime, time.Now())
	if err != nil {
		return Leaf{}, err
	}
	a.current = g
	return leaf, nil
}

// covering returns the newest generation that covers all names and outlives a
// leaf, or makes one. The caller has the lock.
func (a *Authority) covering(names subjects) (*generation, error) {
	enough := time.Now().Add(leafLifetime)
	var old *generation // of one certificate, that covers them
	for _, g := range slices.Backward(a.known) {
		switch {
		case !g.coversNames(names) || !g.issuer.NotAfter.After(enough):
		case g.root != nil:
			return g, nil
		case old == nil:
			old = g
		}
	}
	number := 1
	if n := len(a.known); n > 0 {
		number = a.known[n-1].number + 1
	}
	g, err := newGeneration(number, names, old, time.Now())
	if err != nil {
		return nil, err
	}
	if err := g.writeFiles(a.dir); err != nil {
		return nil, err
	}
	a.known = append(a.known, g)
	return g, nil
}

// subjects are the hosts of a certificate, sorted and without repetition.
type subjects struct {
	names     []string
	addresses []net.IP
	above     []string // those of the names that every name below is meant by
	below     []string // others of which only the names below are meant
	of        string   // what the CA is of; "": the installation
}

// parseHosts accepts host names and IP addresses, with or without a port.
func parseHosts(hosts []string) (subjects, error) {
	var s subjects
	for _, host := range hosts {
		bare := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			bare = h
		}
		bare = strings.Trim(bare, "[]")
		if ip := net.ParseIP(bare); ip != nil {
			if v4 := ip.To4(); v4 != nil {
				ip = v4
			}
			s.addresses = append(s.addresses, ip)
			continue
		}
		name := strings.ToLower(strings.TrimSuffix(bare, "."))
		if !hostName(name) {
			return s, fault.Invalid("%q is no host name that a certificate can be made for", host)
		}
		s.names = append(s.names, name)
	}
	if len(s.names)+len(s.addresses) == 0 {
		return s, fault.Invalid("a certificate needs at least one host")
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	slices.SortFunc(s.addresses, func(x, y net.IP) int { return slices.Compare(x, y) })
	s.addresses = slices.CompactFunc(s.addresses, func(x, y net.IP) bool { return x.Equal(y) })
	return s, nil
}

// hostName admits plain names of at least two labels, and localhost. A single
// label would be a constraint over a whole top-level domain.
func hostName(name string) bool {
	if len(name) > 253 || (!strings.Contains(name, ".") && name != "localhost") {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range label {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// withBelow has all names below those that mean them among the names.
func (s subjects) withBelow() subjects {
	for _, above := range s.above {
		s.names = append(slices.Clip(s.names), "*."+above)
	}
	return s
}

// issueLeaf makes a leaf under a generation.
func (g *generation) issueLeaf(names subjects, lifetime time.Duration, now time.Time) (Leaf, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Leaf{}, err
	}
	serial, err := newSerial()
	if err != nil {
		return Leaf{}, err
	}
	leaf := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Cofferdam"},
		NotBefore:    laterOf(now.Add(-backdate), g.issuer.NotBefore),
		NotAfter:     now.Add(lifetime),
		DNSNames:     names.names,
		IPAddresses:  names.addresses,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, g.issuer, &key.PublicKey, g.key)
	if err != nil {
		return Leaf{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Leaf{}, err
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return Leaf{ChainPEM: append(chain, encodeCertificate(g.issuer)...), KeyPEM: keyPEM}, nil
}

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}
