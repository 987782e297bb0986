package httpapi

import (
	"math"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// tokenRoutes are about tokens.
type tokenRoutes struct{ *desk }

func (s tokenRoutes) listTokens(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Tokens == nil {
		return errNotWired
	}
	views := []api.Token{}
	for _, t := range s.cfg.Tokens.List() {
		views = append(views, viewToken(t))
	}
	return writeJSON(w, r, http.StatusOK, views)
}

// makeToken answers with the secret, which nobody is told again.
func (s tokenRoutes) makeToken(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Tokens == nil {
		return errNotWired
	}
	var body api.MakeToken
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.ExpiresSeconds < 0 || body.ExpiresSeconds > math.MaxInt64/int64(time.Second) {
		return fault.Invalid("expires_seconds is %d; it is a number of seconds from now, or 0 for never", body.ExpiresSeconds)
	}
	if err := s.checkPoliciesExist(append([]string{body.Policy}, body.Policies...)); err != nil {
		return err
	}
	grant := token.Grant{
		Name: body.Name, Policy: body.Policy, Policies: body.Policies, Quota: token.Quota(body.Quota), Admin: body.Admin,
	}
	if body.ExpiresSeconds > 0 {
		grant.Lasts = time.Duration(body.ExpiresSeconds) * time.Second
	}
	undo, err := s.announce(r.Context(), by, "A token is made.", map[string]string{"event": "token_made", "name": body.Name})
	if err != nil {
		return err
	}
	made, secret, err := s.cfg.Tokens.Issue(r.Context(), grant)
	if err != nil {
		return undo(err)
	}
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, r, http.StatusCreated, api.NewToken{Token: viewToken(made), Secret: secret})
}

// checkPoliciesExist refuses names of policies that there are not: a token that is
// bound to one could make no sandbox, and would get whatever is put there later.
func (s tokenRoutes) checkPoliciesExist(names []string) error {
	for _, name := range names {
		if name == "" || s.cfg.Policies == nil {
			continue
		}
		if _, err := s.cfg.Policies.Get(name); err != nil {
			return err
		}
	}
	return nil
}

func (s tokenRoutes) revokeToken(w http.ResponseWriter, r *http.Request) error {
	by, err := callerOf(r.Context())
	if err != nil {
		return err
	}
	if s.cfg.Tokens == nil {
		return errNotWired
	}
	t, err := s.cfg.Tokens.Get(r.PathValue("id"))
	if err != nil {
		return err
	}
	undo, err := s.announce(r.Context(), by, "A token is revoked.", map[string]string{"event": "token_revoked", "name": t.Name})
	if err != nil {
		return err
	}
	revoked, err := s.cfg.Tokens.Revoke(r.Context(), t.ID)
	if err != nil {
		return undo(err)
	}
	return writeJSON(w, r, http.StatusOK, viewToken(revoked))
}

func viewToken(t token.Token) api.Token {
	return api.Token{
		ID: t.ID, Name: t.Name, Created: t.Created, Expires: t.Expires, Revoked: t.Revoked,
		Policy: t.Policy, Policies: t.Policies, Quota: api.Quota(t.Quota), Admin: t.Admin,
	}
}
