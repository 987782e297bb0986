package exchange

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

// tokens gives each secret its own name as its value.
type tokens struct{}

func (tokens) Secrets(_ context.Context, _ Request, uses []Use) (Given, error) {
	values := map[string]string{}
	for _, u := range uses {
		values[u.Secret] = "the " + u.Secret + " token"
	}
	return Given{Secrets: values}, nil
}

func (tokens) Declined(context.Context, []string) {}

func (tokens) Leaked(context.Context, Request, Leak) string { return "a placeholder is left" }

// TestASecretForEachOperation: a fetch gets the one that reads, a push the one that writes,
// without being asked by the host; what is none of git's, or only resembles it, gets that
// of the host or none.
func TestASecretForEachOperation(t *testing.T) {
	basic := func(secret string, o gitwire.Operation) Credential {
		return Credential{Secret: secret, Git: o, Manner: Manner{Header: "Authorization", User: "x-access-token"}}
	}
	read, write, general := basic("read", gitwire.Fetch), basic("write", gitwire.Push), basic("general", "")
	for _, c := range []struct {
		method, target string
		credentials    []Credential
		want           string // "": no credential
	}{
		{"GET", "/acme/app.git/info/refs?service=git-upload-pack", []Credential{write, read}, "read"},
		{"POST", "/acme/app/git-upload-pack", []Credential{write, read}, "read"},
		{"GET", "/acme/app.git/info/refs?service=git-receive-pack", []Credential{write, read}, "write"},
		{"POST", "/acme/app.git/git-receive-pack", []Credential{read, write, general}, "write"},
		{"POST", "/acme/app.git/git-receive-pack", []Credential{general, read}, "general"},
		{"GET", "/acme/app", []Credential{general, read, write}, "general"},
		{"GET", "/acme/app", []Credential{read, write}, ""},
		{"POST", "/acme/app/git%2dreceive-pack", []Credential{read, write}, ""},
		{"GET", "/acme/app.git/info/refs?service=git-receive-pack&x=1", []Credential{read, write}, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "https://git.example"+c.target, http.NoBody)
		if err := New(c.credentials, nil, tokens{}).Outgoing(r); err != nil {
			t.Errorf("%s %s: %v", c.method, c.target, err)
			continue
		}
		want := ""
		if c.want != "" {
			want = "Basic " + encode("x-access-token:the "+c.want+" token")
		}
		if got := r.Header.Get("Authorization"); got != want {
			t.Errorf("%s %s: the host gets %q, and not %q", c.method, c.target, got, want)
		}
	}
}
