package e2b

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// secretInfo is what clients may know of a secret, which is never its value.
type secretInfo struct {
	SecretID       string            `json:"secretID"`
	Name           string            `json:"name"`
	CurrentVersion int               `json:"currentVersion"` // always 1: versions are the vault's
	Metadata       map[string]string `json:"metadata"`       // hosts, policies: lists with commas
	CreatedAt      stamp             `json:"createdAt"`      // not known: the beginning of 1970
	UpdatedAt      stamp             `json:"updatedAt"`
}

// secretRoutes are about the secrets that the gateway puts into requests of a client's sandboxes.
type secretRoutes struct{ *Control }

// secrets are those that the policies which a token may choose name, by name. Others are not the token's to
// know of.
func (c secretRoutes) secrets(r *keyedRequest) []secretInfo {
	hosts, named := map[string][]string{}, map[string][]string{}
	add := func(to map[string][]string, name, what string) {
		if !slices.Contains(to[name], what) {
			to[name] = append(to[name], what)
		}
	}
	for _, choice := range r.token.Choices() {
		of, err := c.cfg.Policies.Get(choice)
		if err != nil {
			continue // no sandbox can be made under it
		}
		for _, cred := range policy.SecretsOf(of.Policy) {
			add(hosts, cred.Secret, cred.Host)
			add(named, cred.Secret, choice)
		}
	}
	all := make([]secretInfo, 0, len(hosts))
	for name := range hosts {
		slices.Sort(hosts[name])
		all = append(all, secretInfo{
			SecretID: secretIDOf(name), Name: name, CurrentVersion: 1,
			Metadata:  map[string]string{"hosts": strings.Join(hosts[name], ","), "policies": strings.Join(named[name], ",")},
			CreatedAt: stamp(time.Unix(0, 0)), UpdatedAt: stamp(time.Unix(0, 0)),
		})
	}
	slices.SortFunc(all, func(a, b secretInfo) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// secretIDOf is the id of the secret with a name.
func secretIDOf(name string) string {
	sum := sha256.Sum256([]byte("secret\x00" + name))
	return "sec_" + hex.EncodeToString(sum[:8])
}

func (c secretRoutes) serveList(w http.ResponseWriter, r *keyedRequest) error {
	p, err := pageOf(r.URL.Query())
	if err != nil {
		return err
	}
	return writeAnswer(r.Context(), w, http.StatusOK, cutPage(w, p, c.secrets(r), func(s secretInfo) string { return s.Name }, false))
}

func (c secretRoutes) serveShow(w http.ResponseWriter, r *keyedRequest) error {
	ref := r.PathValue("id")
	all := c.secrets(r)
	at := slices.IndexFunc(all, func(s secretInfo) bool { return s.SecretID == ref || s.Name == ref })
	if at < 0 {
		return notFound("secret", ref)
	}
	return writeAnswer(r.Context(), w, http.StatusOK, all[at])
}
