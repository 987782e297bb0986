// Package oauth is a source of secrets: access tokens that an OAuth 2.0 token endpoint gives
// for a client's id and secret (client credentials, RFC 6749, section 4.4). Id and secret go
// to that endpoint alone, from the daemon.
package oauth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/remote"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Config says where tokens come from.
type Config struct {
	// TokenURL is the endpoint. Without TLS it can only be on this machine.
	TokenURL     string
	ClientID     string
	ClientSecret secret.Source
	Scopes       []string
	Parameters   map[string]string // of the endpoint's own, such as an audience
	// InBody has id and secret sent in the form, and not by basic authentication.
	InBody bool
	Roots  func() ([]byte, error) // certificates in PEM, beside the system's; nil: none
	// Endless lets a token be used that does not say when it expires: its user knows.
	Endless bool
}

// Endpoint gives tokens to one client.
type Endpoint struct {
	remote.Server
	cfg Config
}

// New checks where tokens come from; nothing is asked.
func New(cfg Config) (*Endpoint, error) {
	if _, err := remote.Address(".token_url", cfg.TokenURL, "https://login.example/oauth/token"); err != nil {
		return nil, err
	}
	if cfg.ClientID == "" {
		return nil, fault.Invalid(".client_id is missing: as what the endpoint knows the daemon")
	}
	for _, own := range []string{"grant_type", "scope", "client_id", "client_secret"} {
		if _, given := cfg.Parameters[own]; given {
			return nil, fault.Invalid(".parameters has %s, which is sent anyway", own)
		}
	}
	return &Endpoint{remote.Server{What: "the token endpoint " + cfg.TokenURL, Roots: cfg.Roots}, cfg}, nil
}

// Fetch implements secret.Source.
func (e *Endpoint) Fetch(ctx context.Context) (secret.Value, error) {
	own, err := secret.FetchToShow(ctx, e.cfg.ClientSecret)
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "the client's secret for %s can't be had: %s", e.What, fault.Sentence(err, "its source does not answer"))
	}
	visit, err := e.Visit()
	if err != nil {
		return secret.Value{}, err
	}
	defer visit.CloseIdleConnections()
	asked := clientcredentials.Config{
		ClientID: e.cfg.ClientID, ClientSecret: own.Reveal(), TokenURL: e.cfg.TokenURL, Scopes: e.cfg.Scopes, AuthStyle: oauth2.AuthStyleInHeader, EndpointParams: url.Values{},
	}
	if e.cfg.InBody {
		asked.AuthStyle = oauth2.AuthStyleInParams
	}
	for key, value := range e.cfg.Parameters {
		asked.EndpointParams.Set(key, value)
	}
	token, err := asked.Token(context.WithValue(ctx, oauth2.HTTPClient, &visit.Client))
	switch {
	case visit.Over():
		return secret.Value{}, e.Problem("gave more than a token")
	case err != nil:
		return secret.Value{}, e.declined(ctx, err)
	}
	return e.readToken(token)
}

// readToken makes a secret of a token, for as long as that counts.
func (e *Endpoint) readToken(token *oauth2.Token) (secret.Value, error) {
	if !strings.EqualFold(token.Type(), "Bearer") {
		return secret.Value{}, e.Problem("gave a token of another type than bearer, which can't be put into requests")
	}
	v, err := secret.NewValue(token.AccessToken)
	switch {
	case err != nil:
	case !token.Expiry.IsZero():
		v, err = v.For(time.Until(token.Expiry))
	case !e.cfg.Endless:
		err = fault.New(fault.ErrUnavailable, "it does not say when it expires (expires_in); the operator says with keep how long it is used")
	}
	if err != nil {
		return secret.Value{}, e.Problem("gave a token that can't be used: " + fault.Sentence(err, "it is none"))
	}
	return v, nil
}

// declined says why there is no token. The library's own words have the answer in them,
// and are not kept; of the endpoint's, only those that the standard has.
func (e *Endpoint) declined(ctx context.Context, err error) error {
	if own, is := errors.AsType[*url.Error](err); is {
		return e.Unreached(ctx, own.Err)
	}
	refused, is := errors.AsType[*oauth2.RetrieveError](err)
	if !is {
		return e.Problem("gave an answer that is no token")
	}
	status := refused.Response.StatusCode
	switch {
	case refused.ErrorCode == "invalid_client" || status == 401:
		return e.Problem("does not know the client (invalid_client); look at client_id and at the client's secret, and whether it wants them in the form (in_body)")
	case slices.Contains([]string{"invalid_request", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target"}, refused.ErrorCode):
		return e.Problem("refuses a token (" + refused.ErrorCode + ")")
	case status >= 300 && status < 400:
		return e.Problem("sends elsewhere, where the client's secret is not taken; give the endpoint's own URL")
	}
	return fault.New(fault.ErrUnavailable, "%s answers with the status %d", e.What, status)
}
