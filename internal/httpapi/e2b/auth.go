package e2b

import (
	"errors"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/token"
)

var (
	errNoKey  = errors.New("no API key: send one as X-API-Key; cofferdam token create makes one on the daemon's host")
	errBadKey = errors.New("the API key is not valid here, or not any more")
)

// authenticate finds the client of a request. Whether a key is unknown, revoked or
// expired is not told.
func (c *Control) authenticate(r *http.Request) (token.Token, error) {
	secret := r.Header.Get("X-Api-Key")
	if scheme, bearer, ok := strings.Cut(r.Header.Get("Authorization"), " "); secret == "" && ok && strings.EqualFold(scheme, "Bearer") {
		secret = strings.TrimSpace(bearer)
	}
	if secret == "" {
		return token.Token{}, errNoKey
	}
	t, ok := c.cfg.Tokens.Check(secret)
	if !ok {
		return token.Token{}, errBadKey
	}
	return t, nil
}

// ownerOf is whose a client's sandboxes are.
func ownerOf(t token.Token) sandbox.Owner { return sandbox.Owner{Token: t.ID, Quota: t.Quota} }
