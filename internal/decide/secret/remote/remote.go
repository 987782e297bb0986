// Package remote asks servers that have secrets: by TLS, without a proxy, following no
// redirect, and reading no more than an answer can have.
package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// MaxAnswer bounds what a server may say, in bytes.
const MaxAnswer = 512 << 10

// Address reads a server's URL: of https, or of this machine. An error begins with the key
// in the configuration; example is a URL that would do.
func Address(key, text, example string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fault.Invalid("%s must be a URL like %s", key, example)
	case u.Scheme == "http" && !isThisMachine(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.Invalid("%s must begin with https://; without TLS a server can only be on this machine, as http://127.0.0.1:8200", key)
	}
	return u, nil
}

// isThisMachine tells whether a host is this machine, written as an address.
func isThisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Server is one that is asked.
type Server struct {
	// Its name, in sentences: "the vault at https://vault.example:8200".
	What string
	// Roots are certificates in PEM that its own may come from, beside the system's; nil: none.
	Roots func() ([]byte, error)
}

// Visit is one exchange with a server, over connections of its own: they are seldom.
type Visit struct {
	http.Client
	server Server
	over   atomic.Bool // the answer had more than MaxAnswer
}

// Visit begins an exchange. The caller ends it with CloseIdleConnections.
func (s Server) Visit() (*Visit, error) {
	transport := &http.Transport{
		DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}
	if s.Roots != nil {
		pem, err := s.Roots()
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the certificates for %s can't be read", s.What)
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.ErrUnavailable, "there is no certificate in the file for %s", s.What)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	v := &Visit{server: s}
	v.Client = http.Client{
		Transport:     bounding{transport, &v.over},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // what is sent stays here
	}
	return v, nil
}

// Over tells whether an answer had more than MaxAnswer.
func (v *Visit) Over() bool { return v.over.Load() }

// Problem is that the server does or has something.
func (s Server) Problem(what string) error {
	return fault.New(fault.ErrUnavailable, "%s %s", s.What, what)
}

// Unreached is why there is no answer. The cause has the URL and no more.
func (s Server) Unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return s.Problem("does not answer in time")
	}
	return fault.Wrap(fault.ErrUnavailable, err, "%s can't be reached", s.What)
}

// bounding has answers fail that are too long.
type bounding struct {
	*http.Transport
	over *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (b bounding) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.Transport.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{answer.Body, MaxAnswer, b.over}
	}
	return answer, err
}

// boundedBody is a body that fails beyond a length.
type boundedBody struct {
	io.ReadCloser
	left int
	over *atomic.Bool
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		b.over.Store(true)
		return 0, errors.New("an answer is too long")
	}
	return n, err
}
