// Package vault is a source of secrets: a server with the HTTP interface of Vault and
// OpenBao, of which the second version of the key-value engine is read.
package vault

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/remote"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

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
	remote.Server
	cfg Config
	url string
}

// New checks where the secret is; nothing is asked.
func New(cfg Config) (*Place, error) {
	u, err := remote.Address(".address", cfg.Address, "https://vault.example:8200")
	if err != nil {
		return nil, err
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
	server := remote.Server{What: "the vault at " + cfg.Address, Roots: cfg.Roots}
	return &Place{server, cfg, u.JoinPath("v1", cfg.Mount, "data", cfg.Path).String()}, nil
}

// Fetch implements secret.Source. Each call is a connection of its own: it is made seldom.
func (p *Place) Fetch(ctx context.Context) (secret.Value, error) {
	token, err := secret.FetchToShow(ctx, p.cfg.Token)
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "the token for the vault can't be had: %s", fault.Sentence(err, "its source does not answer"))
	}
	visit, err := p.Visit()
	if err != nil {
		return secret.Value{}, err
	}
	defer visit.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "the vault can't be asked")
	}
	request.Header.Set("X-Vault-Token", token.Reveal())
	request.Header.Set("X-Vault-Request", "true")
	if p.cfg.Namespace != "" {
		request.Header.Set("X-Vault-Namespace", p.cfg.Namespace)
	}
	answer, err := visit.Do(request)
	if err != nil {
		return secret.Value{}, p.Unreached(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return secret.Value{}, p.declined(answer.StatusCode)
	}
	body, err := io.ReadAll(answer.Body)
	switch {
	case visit.Over():
		return secret.Value{}, p.Problem("gave more than a secret")
	case err != nil:
		return secret.Value{}, p.Unreached(ctx, err)
	}
	return p.readField(body)
}

// readField finds the field. Of what else is there, nothing is said. If it is lent for a time,
// it is used no longer than that.
func (p *Place) readField(body []byte) (secret.Value, error) {
	var answer struct {
		Lease float64 `json:"lease_duration"` // in seconds; 0: for good
		Data  struct {
			Data map[string]json.RawMessage `json:"data"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return secret.Value{}, p.Problem("gave an answer that is no JSON of the key-value engine's second version")
	}
	field, there := answer.Data.Data[p.cfg.Field]
	if !there {
		return secret.Value{}, p.Problem("has no field " + p.cfg.Field + " there")
	}
	var text string
	if json.Unmarshal(field, &text) != nil {
		return secret.Value{}, p.Problem("has a field " + p.cfg.Field + " there that is no text")
	}
	v, err := secret.Line(text)
	if err != nil || answer.Lease == 0 {
		return v, err
	}
	return v.For(time.Duration(min(max(answer.Lease, 0), math.MaxInt32) * float64(time.Second)))
}

// declined says what a status means.
func (p *Place) declined(status int) error {
	switch status {
	case http.StatusServiceUnavailable:
		return p.Problem("is sealed, or down for maintenance; unseal it")
	case http.StatusNotImplemented:
		return p.Problem("is not initialized")
	case http.StatusForbidden, http.StatusUnauthorized:
		return p.Problem("denies it to the daemon's token; renew the token, or let its policy read the path")
	case http.StatusNotFound:
		return p.Problem("has no secret there, or its version was deleted")
	case http.StatusTooManyRequests, 472, 473:
		return p.Problem("is a standby or limits the rate; give the active server's address")
	}
	if status >= 300 && status < 400 {
		return p.Problem("sends elsewhere, where its token is not taken; give the active server's address")
	}
	return fault.New(fault.ErrUnavailable, "the vault at %s answers with the status %d", p.cfg.Address, status)
}
