package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Listen is where clients with tokens reach the daemon over TCP. Its zero value
// is nowhere: there is the Unix socket only.
type Listen struct {
	// Address is "host:port", the host an IP address or localhost; an empty host is
	// every address of the machine. Without TLS it must be a loopback address.
	Address string `yaml:"address"`
	// TLS says with which certificate it answers: auto is one of a local CA that is
	// made at the first start; without this key it is plain HTTP.
	TLS TLS `yaml:"tls"`
	// Domain is the name below which the ports of sandboxes are reached, as
	// PORT-ID.domain; "": there are no such names.
	Domain string `yaml:"domain"`
	// Names are others, or addresses, under which clients reach the daemon, for the
	// certificate that it makes itself.
	Names []string `yaml:"names"`
	// MaxConnections is how many there may be at one time; 2,000.
	MaxConnections int `yaml:"max_connections"`
	// RequestsPerSecond is what one token may ask in the long run; 200. Burst is
	// what it may ask at once; twice that.
	RequestsPerSecond float64 `yaml:"requests_per_second"`
	Burst             int     `yaml:"burst"`
}

// TLS says with which certificate the listener answers; the zero value is plain
// HTTP. It is written as "auto", or as a mapping with both files.
type TLS struct {
	// Auto: a certificate of a local CA, made at the first start, which clients
	// are told to trust.
	Auto bool
	// CertFile has the chain, the server's own certificate first, and KeyFile its
	// key, both in PEM. They are read again when they change.
	CertFile, KeyFile string
}

// Wanted reports whether the listener answers in TLS.
func (t TLS) Wanted() bool { return t.Auto || t.CertFile != "" }

// UnmarshalYAML parses both forms, strictly.
func (t *TLS) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Value == "auto" {
		*t = TLS{Auto: true}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: tls is auto, or { cert_file: /path, key_file: /path }", n.Line)
	}
	var read TLS
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		into := map[string]*string{"cert_file": &read.CertFile, "key_file": &read.KeyFile}[key.Value]
		switch {
		case into == nil:
			return fmt.Errorf("line %d: tls has no key %q; it has cert_file and key_file", key.Line, key.Value)
		case *into != "":
			return fmt.Errorf("line %d: tls.%s is there twice", key.Line, key.Value)
		case value.Kind != yaml.ScalarNode || !filepath.IsAbs(value.Value):
			return fmt.Errorf("line %d: tls.%s must be an absolute path", key.Line, key.Value)
		}
		*into = value.Value
	}
	if read.CertFile == "" || read.KeyFile == "" {
		return fmt.Errorf("line %d: tls needs both cert_file and key_file", n.Line)
	}
	*t = read
	return nil
}

// Wanted reports whether there is a TCP listener at all.
func (l Listen) Wanted() bool { return l.Address != "" }

// Check says what is wrong with it. It is exported for addresses that come from
// a flag.
func (l Listen) Check() error {
	if !l.Wanted() {
		if l.TLS.Wanted() || l.Domain != "" || len(l.Names) > 0 {
			return errors.New(".address is missing: tls, domain and names need a listener")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(l.Address)
	if err != nil {
		return fmt.Errorf(".address is %q; it must be host:port, such as 127.0.0.1:7433", l.Address)
	}
	if !portNumber(port) {
		return fmt.Errorf(".address is %q; its port must be a number up to 65535", l.Address)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" && host != "" {
		return fmt.Errorf(".address is %q; its host must be an IP address or localhost, not a name that may change its meaning", l.Address)
	}
	if !l.TLS.Wanted() && !l.Loopback() {
		return fmt.Errorf(".address is %q, which other machines may reach, and tokens would go over the network in plain text: "+
			"set listen.tls to auto or to a certificate's files, or listen on 127.0.0.1", l.Address)
	}
	if err := l.checkNames(); err != nil {
		return err
	}
	if l.TLS.Wanted() && l.Domain != "" && !strings.Contains(l.Domain, ".") {
		return fmt.Errorf(".domain is %q, which has one part; %s%s", l.Domain, onePart, l.Domain)
	}
	for key, n := range map[string]float64{"max_connections": float64(l.MaxConnections), "requests_per_second": l.RequestsPerSecond, "burst": float64(l.Burst)} {
		if n < 0 {
			return fmt.Errorf(".%s is %v; it must be a number above 0", key, n)
		}
	}
	return nil
}

// portNumber admits a port in its one spelling.
func portNumber(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == port
}

// checkNames finds what a certificate, or a URL, can't have for a name.
func (l Listen) checkNames() error {
	for i, name := range append([]string{l.Domain}, l.Names...) {
		key := ".domain"
		if i > 0 {
			key = fmt.Sprintf(".names[%d]", i-1)
		}
		if bare, _, err := net.SplitHostPort(name); err == nil && hostName(bare) {
			return fmt.Errorf("%s is %q; write it without a port: clients are told that of listen.address", key, name)
		}
		if ip, err := netip.ParseAddr(name); err == nil && ip.Zone() == "" && i > 0 {
			continue // clients may know it by an address
		}
		if bare, star := strings.CutPrefix(name, "*."); star && i == 0 && hostName(bare) {
			return fmt.Errorf("%s is %q; write %s, which stands for all names below it", key, name, bare)
		}
		if name != "" && !hostName(name) {
			return fmt.Errorf("%s is %q, which is no host name: that has two parts or more of lower-case letters, digits and dashes, with dots between them, and the last is no number", key, name)
		}
	}
	return nil
}

// Loopback reports whether only this machine reaches the address.
func (l Listen) Loopback() bool {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// URL is where a client on this machine reaches the listener.
func (l Listen) URL() string {
	host, port, err := net.SplitHostPort(l.Address)
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if l.TLS.Wanted() {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// PublicDomain is Domain with the port that a client must add; "" if there is no
// domain.
func (l Listen) PublicDomain() string {
	_, port, err := net.SplitHostPort(l.Address)
	if err != nil || l.Domain == "" {
		return ""
	}
	if usual := map[bool]string{true: "443", false: "80"}[l.TLS.Wanted()]; port == usual {
		return l.Domain
	}
	return l.Domain + ":" + port
}

// ClientDomain is PublicDomain for clients that make https URLs of it, such as the E2B SDKs; "": there is no
// domain, or no TLS.
func (l Listen) ClientDomain() string {
	if !l.TLS.Wanted() {
		return ""
	}
	return l.PublicDomain()
}

// defaultPort is the listener's if only a domain is given.
const defaultPort = "7433"

// onePart is why no certificate is made for all names below a name of one part, which follows it.
const onePart = "clients take no certificate for all names below it, so give it two, such as sandbox."

// Below is the listener with the names of domain, which may end in a port: that is then the address's. Names
// need TLS, as clients make https URLs of them; without an address it listens on this machine alone.
func (l Listen) Below(domain string) (Listen, error) {
	name, port := domain, ""
	if strings.Contains(domain, ":") {
		var err error
		if name, port, err = net.SplitHostPort(domain); err != nil {
			return l, fault.Invalid("the domain is %q; it is NAME or NAME:PORT, such as sandbox.localhost:7433", domain)
		}
		if !portNumber(port) {
			return l, fault.Invalid("the domain is %q; its port must be a number up to 65535, as in sandbox.localhost:7433", domain)
		}
	}
	l.Domain = strings.ToLower(strings.TrimSuffix(name, "."))
	if _, err := netip.ParseAddr(l.Domain); err == nil {
		return l, fault.Invalid("the domain is the address %s; it is a name, below which there are others", l.Domain)
	}
	if !strings.Contains(l.Domain, ".") {
		return l, fault.Invalid("the domain %q has one part; %s%s", domain, onePart, l.Domain)
	}
	if l.Address == "" {
		l.Address = net.JoinHostPort("127.0.0.1", cmp.Or(port, defaultPort))
	}
	host, listens, err := net.SplitHostPort(l.Address)
	if err == nil && port != "" && listens != port {
		l.Address = net.JoinHostPort(host, port)
	}
	if !l.TLS.Wanted() {
		l.TLS = TLS{Auto: true}
	}
	return l, nil
}

func (l Listen) withDefaults() Listen {
	if l.MaxConnections == 0 {
		l.MaxConnections = 2_000
	}
	if l.RequestsPerSecond == 0 {
		l.RequestsPerSecond = 200
	}
	if l.Burst == 0 {
		l.Burst = max(1, int(2*l.RequestsPerSecond))
	}
	return l
}

var (
	hostLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// addressLabel is a last label that makes a name an address for clients which follow the URL standard.
	addressLabel = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)
)

// hostName admits names of at least two labels, in lower case: what a
// certificate and a URL can carry.
func hostName(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if addressLabel.MatchString(last) { // clients take 127.1 and box.0x7f for addresses, or for nothing
		return false
	}
	if len(name) > 253 || !strings.Contains(name, ".") && name != "localhost" {
		return false
	}
	for part := range strings.SplitSeq(name, ".") {
		if !hostLabel.MatchString(part) {
			return false
		}
	}
	return true
}

// Tokens is the tokens' file.
func (p Paths) Tokens() string { return filepath.Join(p.State, "tokens.db") }

// TokensMade is there once a token was made.
func (p Paths) TokensMade() string { return filepath.Join(p.State, "tokens.made") }

// AccessKey is the key that sandboxes' access tokens are made with.
func (p Paths) AccessKey() string { return filepath.Join(p.State, "access.key") }

// Unended is what the log says has begun and has not ended.
func (p Paths) Unended() string { return filepath.Join(p.State, "unended.json") }

// FindingsKey is the key that digests of found secrets are made with.
func (p Paths) FindingsKey() string { return filepath.Join(p.State, "findings.key") }

// AdminSocket is where metrics, profiles and health are, for this user only.
func (p Paths) AdminSocket() string { return filepath.Join(p.Runtime, "admin.sock") }

// APIAuthority is the directory of the CA that `listen.tls: auto` makes; it
// vouches for the API and is no sandbox's.
func (p Paths) APIAuthority() string { return filepath.Join(p.State, "api-ca") }

// APICA is that CA's certificate, for clients to trust.
func (p Paths) APICA() string { return filepath.Join(p.State, "api-ca.pem") }

// APIBundle has that certificate and the system's, for clients that trust what one file has and nothing
// else.
func (p Paths) APIBundle() string { return filepath.Join(p.State, "api-ca-bundle.pem") }
