package e2b

import (
	"errors"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/token"
)

var (
	errNoKey  = errors.New("no API key: send one as X-API-Key; cofferdam token create makes one on the daemon's host")
	errBadKey = errors.New("the API key is not valid here, or not any more")
)

// authenticate finds the client of a request. Whether a key is unknown, revoked or
// expired is not told.
func (c *Control) authenticate(r *http.Request) (token.Token, error) {
	secret := backend.Secret(r)
	if secret == "" {
		return token.Token{}, errNoKey
	}
	t, ok := c.cfg.Tokens.Check(secret)
	if !ok {
		return token.Token{}, errBadKey
	}
	return t, nil
}
