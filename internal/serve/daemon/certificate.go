package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/authority"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

const (
	// renewBefore is how long before its end an own certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
	// lookAgain is how long a certificate's files are believed to be unchanged.
	lookAgain = 10 * time.Second
)

// serverTLS is how the TCP listener answers; nil: in plain HTTP.
func (d *Daemon) serverTLS(ctx context.Context) (*tls.Config, error) {
	cfg := d.opts.Config.Listen
	var source func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	switch {
	case cfg.TLS.Auto:
		ca, err := authority.Open(d.opts.Paths.APIAuthority())
		if err != nil {
			return nil, err
		}
		own := &ownCertificate{ca: ca, hosts: apiHosts(cfg), domain: cfg.Domain, publish: d.opts.Paths.APICA(), bundle: d.opts.Paths.APIBundle(), environment: func() []string { return hostEnvironment(d.opts.Paths) }}
		if _, err := own.getCertificate(nil); err != nil {
			return nil, err
		}
		source = own.getCertificate
	case cfg.TLS.CertFile != "":
		files := &fileCertificate{cert: cfg.TLS.CertFile, key: cfg.TLS.KeyFile, log: d.opts.Log}
		if _, err := files.getCertificate(nil); err != nil {
			return nil, err
		}
		source = files.getCertificate
	default:
		return nil, nil //nolint:nilnil // plain HTTP is no error
	}
	return &tls.Config{GetCertificate: source, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}, ctx.Err()
}

// apiHosts are the names and addresses that clients may reach the listener by.
func apiHosts(l config.Listen) []string {
	hosts := append([]string{"localhost", "127.0.0.1", "::1"}, l.Names...)
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return hosts
	}
	if ip, err := netip.ParseAddr(host); err == nil && !ip.IsUnspecified() {
		hosts = append(hosts, ip.Unmap().String())
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		if name, err := os.Hostname(); err == nil && (config.Listen{Address: "127.0.0.1:0", Domain: name}).Check() == nil {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// ownCertificate is one of the local CA, made anew before it ends.
type ownCertificate struct {
	ca      *authority.Authority
	hosts   []string
	domain  string // "": no names of ports
	publish string // where the CA's certificate is put for clients
	bundle  string // where it is put with the system's, for clients that trust the one file alone
	// environment says which file the system's are in, if it is another than usual.
	environment func() []string

	mu   sync.Mutex // guards what follows
	now  *tls.Certificate
	ends time.Time
}

func (o *ownCertificate) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.now != nil && time.Until(o.ends) > renewBefore {
		return o.now, nil
	}
	leaf, err := o.issueLeaf()
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(leaf.ChainPEM, leaf.KeyPEM)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Replace(o.publish, o.ca.CAPEM(), 0o644); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the CA's certificate can't be put where clients find it")
	}
	if err := atomicfile.Replace(o.bundle, o.withSystemRoots(), 0o644); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the CA's certificate and the system's can't be put where clients find them")
	}
	o.now, o.ends = &pair, pair.Leaf.NotAfter
	return o.now, nil
}

// withSystemRoots is the CA's certificate behind those that programs of this machine trust: SSL_CERT_FILE
// replaces these, and an agent speaks to its model, too. A bundle of ours that the daemon's own environment
// names is not put into itself.
func (o *ownCertificate) withSystemRoots() []byte {
	ours := func(path string) bool { return sameFile(path, o.publish) || sameFile(path, o.bundle) }
	return append(discover.Roots(o.environment(), ours), o.ca.CAPEM()...)
}

// sameFile tells whether two paths lead to one file, by whatever links.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func (o *ownCertificate) issueLeaf() (authority.Leaf, error) {
	if o.domain == "" {
		return o.ca.Certificate(context.Background(), o.hosts)
	}
	return o.ca.Below(context.Background(), o.hosts, o.domain)
}

// fileCertificate is the operator's own, read again when its files change. While
// the new one can't be read the old one is shown.
type fileCertificate struct {
	cert, key string
	log       interface{ Error(msg string, args ...any) }

	mu     sync.Mutex // guards what follows
	now    *tls.Certificate
	looked time.Time
	stamp  [2]time.Time
}

func (f *fileCertificate) getCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now != nil && time.Since(f.looked) < lookAgain {
		return f.now, nil
	}
	f.looked = time.Now()
	stamp := [2]time.Time{modified(f.cert), modified(f.key)}
	if f.now != nil && stamp == f.stamp {
		return f.now, nil
	}
	pair, err := f.readFiles()
	if err != nil && f.now != nil {
		f.log.Error("the listener's new certificate can't be read; the old one is shown", "file", f.cert, "err", err)
		return f.now, nil
	}
	if err != nil {
		return nil, err
	}
	f.now, f.stamp = pair, stamp
	return f.now, nil
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// readFiles refuses a key that everybody can read, and a certificate that is over.
func (f *fileCertificate) readFiles() (*tls.Certificate, error) {
	info, err := os.Stat(f.key)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "listen.tls.key_file can't be read")
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fault.New(fault.ErrForbidden, "listen.tls.key_file: everybody can read or change %s (mode %04o); chmod 600 it", f.key, info.Mode().Perm())
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "listen.tls.cert_file and key_file are no certificate with its key")
	}
	if err := checkLeaf(pair.Leaf); err != nil {
		return nil, err
	}
	return &pair, nil
}

func checkLeaf(leaf *x509.Certificate) error {
	if time.Now().After(leaf.NotAfter) {
		return fault.Invalid("listen.tls.cert_file: the certificate ended on %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return nil
}
