package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// The variables that FromEnv reads.
const (
	EnvHost  = "COFFERDAM_HOST"  // a URL as in Remote.URL, or unix:///PATH
	EnvToken = "COFFERDAM_TOKEN" //nolint:gosec // a variable's name, no secret
	EnvCA    = "COFFERDAM_CA"    // a file of certificates in PEM
)

const (
	dialTimeout = 10 * time.Second
	unixScheme  = "unix://"
)

// Remote is a daemon on the network.
type Remote struct {
	// URL is https://HOST:PORT. Plain http:// is for this machine's own addresses
	// only: a token does not go over a network in the clear.
	URL   string
	Token string
	// CAs are certificates in PEM that are trusted in place of the system's; nil:
	// the system's.
	CAs []byte
}

// Open makes a client of a daemon on the network. Nothing is dialled before the
// first call.
func Open(r Remote) (*Client, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, fmt.Errorf("invalid daemon address: it is https://HOST:PORT, without a user, a path or a query")
	}
	if r.Token == "" {
		return nil, fmt.Errorf("the daemon at %s takes only callers with a token, which cofferdam token create makes on its host: give one, or set %s", u.Host, EnvToken)
	}
	if strings.ContainsFunc(r.Token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, errors.New("the token has characters that no token has")
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	switch u.Scheme {
	case "http":
		if !isLoopback(u.Hostname()) {
			return nil, fmt.Errorf("the token would go to %s in the clear: write https:// (http:// is for this machine's own addresses)", u.Host)
		}
		address := withPort(u, "80")
		return newClient("http://"+u.Host, r.URL, r.Token, func(ctx context.Context) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}), nil
	case "https":
		config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname(), NextProtos: []string{"http/1.1"}}
		if r.CAs != nil {
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(r.CAs) {
				return nil, errors.New("the CA file has no certificate in PEM")
			}
		}
		secure, address := &tls.Dialer{NetDialer: dialer, Config: config}, withPort(u, "443")
		return newClient("https://"+u.Host, r.URL, r.Token, func(ctx context.Context) (net.Conn, error) {
			return secure.DialContext(ctx, "tcp", address)
		}), nil
	}
	return nil, fmt.Errorf("the daemon's address %q has to begin with https:// (or http:// on this machine)", redact(r.URL))
}

// Through makes a client of a daemon to which dial makes connections, on which HTTP is
// spoken: a daemon in the same process, say. where is its address for people, token "" none.
func Through(where, token string, dial func(context.Context) (net.Conn, error)) *Client {
	return newClient("http://daemon", where, token, dial)
}

// redact keeps a password that somebody put into an address out of messages.
func redact(text string) string {
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	return "that was given"
}

func withPort(u *url.URL, port string) string {
	if u.Port() != "" {
		port = u.Port()
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// isLoopback reports whether a host is an address of this machine's loopback. A name
// is not enough, but for localhost, which resolves to nothing else.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// FromEnv makes a client of the daemon that the environment names: COFFERDAM_HOST
// (https://HOST:PORT, or unix:///PATH), COFFERDAM_TOKEN and COFFERDAM_CA. Without
// COFFERDAM_HOST it is nil and no error.
func FromEnv() (*Client, error) {
	host := os.Getenv(EnvHost)
	if host == "" {
		return nil, nil //nolint:nilnil // nothing is named, which is no error
	}
	return At(host, os.Getenv(EnvToken), os.Getenv(EnvCA))
}

// At makes a client of the daemon at host: a URL as in Remote.URL, or unix:///PATH,
// which needs no token. caFile "" is the system's certificates.
func At(host, token, caFile string) (*Client, error) {
	if path, ok := strings.CutPrefix(host, unixScheme); ok {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("the daemon's socket %q has to be named by its absolute path: %s/PATH", host, unixScheme)
		}
		return New(path), nil
	}
	r := Remote{URL: host, Token: token}
	if caFile != "" {
		cas, err := readCAs(caFile)
		if err != nil {
			return nil, err
		}
		r.CAs = cas
	}
	return Open(r)
}

// maxCAs bounds a file of certificates, in bytes: all that a system trusts is a quarter of it.
const maxCAs = 1 << 20

// readCAs reads a file of certificates. It waits for nobody: opening a named pipe would, until
// somebody writes to it.
func readCAs(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the CA file %s does not exist", path)
	} else if err != nil {
		return nil, fmt.Errorf("read the CA file: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err != nil {
		return nil, fmt.Errorf("read the CA file: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the CA file %s is no regular file; name the file of certificates itself", path)
	}
	cas, err := io.ReadAll(io.LimitReader(file, maxCAs+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the CA file: %w", err)
	case len(cas) > maxCAs:
		return nil, fmt.Errorf("the CA file %s is larger than %d bytes; give one with the daemon's certificates only", path, maxCAs)
	}
	return cas, nil
}
