// Package vault is a source of secrets: a server with the HTTP interface of Vault and
// OpenBao, of which the second version of the key-value engine is read.
package vault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/secret"
)

// maxAnswer bounds what a server may say.
const maxAnswer = 1 << 20

// Config says where a secret is.
type Config struct {
	// Address is the server's URL. Without TLS it can only be on this machine.
	Address   string
	Namespace string
	Mount     string // of the key-value engine
	Path      string
	Field     string
	Token     secret.Source          // opens it
	Roots     func() ([]byte, error) // certificates in PEM, beside the system's; nil: none
}

// Place is one field of one secret on a server.
type Place struct {
	cfg Config
	url string
}

// New checks where the secret is; nothing is asked.
func New(cfg Config) (*Place, error) {
	u, err := url.Parse(cfg.Address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fault.Invalid(".address must be a URL like https://vault.example:8200")
	case u.Scheme == "http" && !local(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.Invalid(".address must begin with https://; without TLS a server can only be on this machine, as http://127.0.0.1:8200")
	}
	for _, part := range []struct{ key, text string }{{"mount", cfg.Mount}, {"path", cfg.Path}} {
		for segment := range strings.SplitSeq(part.text, "/") {
			if segment == "" || segment == "." || segment == ".." {
				return nil, fault.Invalid(".%s is %q; it is names with / between them", part.key, part.text)
			}
		}
	}
	if cfg.Field == "" {
		return nil, fault.Invalid(".field is missing: which of the secret's fields it is")
	}
	return &Place{cfg, u.JoinPath("v1", cfg.Mount, "data", cfg.Path).String()}, nil
}

// local tells whether a host is this machine, written as an address.
func local(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// Fetch implements secret.Source. Each call is a connection of its own: it is made seldom.
func (p *Place) Fetch(ctx context.Context) (secret.Value, error) {
	token, err := p.cfg.Token.Fetch(ctx)
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "the token for the vault can't be had: %s", fault.Sentence(err, "its source does not answer"))
	}
	client, err := p.client()
	if err != nil {
		return secret.Value{}, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "the vault can't be asked")
	}
	request.Header.Set("X-Vault-Token", token.Reveal())
	request.Header.Set("X-Vault-Request", "true")
	if p.cfg.Namespace != "" {
		request.Header.Set("X-Vault-Namespace", p.cfg.Namespace)
	}
	answer, err := client.Do(request)
	if err != nil {
		return secret.Value{}, p.unreached(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return secret.Value{}, p.declined(answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return secret.Value{}, p.unreached(ctx, err)
	case len(body) > maxAnswer:
		return secret.Value{}, p.problem("gave more than a secret")
	}
	return p.read(body)
}

// client asks the server itself: no proxy, and no server that it names instead.
func (p *Place) client() (*http.Client, error) {
	transport := &http.Transport{DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	if p.cfg.Roots != nil {
		pem, err := p.cfg.Roots()
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the certificates for the vault can't be read")
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.ErrUnavailable, "there is no certificate in the file for the vault")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token stays here
	}, nil
}

// read finds the field. Of what else is there, nothing is said.
func (p *Place) read(body []byte) (secret.Value, error) {
	var answer struct {
		Data struct {
			Data map[string]json.RawMessage `json:"data"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return secret.Value{}, p.problem("gave an answer that is no JSON of the key-value engine's second version")
	}
	field, there := answer.Data.Data[p.cfg.Field]
	if !there {
		return secret.Value{}, p.problem("has no field " + p.cfg.Field + " there")
	}
	var text string
	if json.Unmarshal(field, &text) != nil {
		return secret.Value{}, p.problem("has a field " + p.cfg.Field + " there that is no text")
	}
	return secret.Line(text)
}

// declined says what a status means.
func (p *Place) declined(status int) error {
	switch status {
	case http.StatusServiceUnavailable:
		return p.problem("is sealed, or down for maintenance; unseal it")
	case http.StatusNotImplemented:
		return p.problem("is not initialized")
	case http.StatusForbidden, http.StatusUnauthorized:
		return p.problem("denies it to the daemon's token; renew the token, or let its policy read the path")
	case http.StatusNotFound:
		return p.problem("has no secret there, or its version was deleted")
	case http.StatusTooManyRequests, 472, 473:
		return p.problem("is a standby or limits the rate; give the active server's address")
	}
	if status >= 300 && status < 400 {
		return p.problem("sends elsewhere, where its token is not taken; give the active server's address")
	}
	return fault.New(fault.ErrUnavailable, "the vault at %s answers with the status %d", p.cfg.Address, status)
}

func (p *Place) problem(what string) error {
	return fault.New(fault.ErrUnavailable, "the vault at %s %s", p.cfg.Address, what)
}

// unreached is why there is no answer. The cause has the URL and no more.
func (p *Place) unreached(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return p.problem("does not answer in time")
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the vault at %s can't be reached", p.cfg.Address)
}
