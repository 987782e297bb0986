package backend_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

func TestSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, authorization, want string }{
		{"", "", ""},
		{"k", "", "k"},
		{"", "Bearer b", "b"},
		{"", "bearer  b ", "b"},
		{"", "Basic b", ""},
		{"k", "Bearer b", "k"}, // clients of the E2B wire send something else beside their key
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-API-Key", c.key)
		r.Header.Set("Authorization", c.authorization)
		if got := backend.Secret(r); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	for key, good := range map[string]bool{
		"": true, "a-key": true, strings.Repeat("k", 255): true, strings.Repeat("k", 256): false, "two words": false, "k\u00e9y": false,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Idempotency-Key", key)
		if got, err := backend.IdempotencyKey(r); (err == nil) != good || good && got != key {
			t.Errorf("%.20q: %q, %v", key, got, err)
		}
	}
}

// named has policies of any name but "gone".
type named struct{}

func (named) Get(name string) (*namedpolicy.Named, error) {
	if name == "gone" {
		return nil, fault.New(fault.ErrNotFound, "there is no policy named %q", name)
	}
	return &namedpolicy.Named{Name: name}, nil
}

// TestTokenPolicy: a token uses what it was given, and learns of no other whether there is
// one.
func TestTokenPolicy(t *testing.T) {
	t.Parallel()
	bound := token.Token{Name: "ci", Policy: "base", Policies: []string{"more", "gone", "base"}}
	for name, want := range map[string]error{"base": nil, "more": nil, "gone": fault.ErrNotFound, "another": fault.ErrForbidden, "": fault.ErrForbidden} {
		p, err := backend.TokenPolicy(named{}, bound, name)
		if !errors.Is(err, want) || want == nil && p.Name != name {
			t.Errorf("%q: %v, %v", name, p, err)
		}
		if want == fault.ErrForbidden && !strings.Contains(err.Error(), "it may choose: base, gone, more") { //nolint:errorlint // the table's own
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestRetrySeconds(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int{0: 0, time.Millisecond: 1, time.Second: 1, time.Second + 1: 2} {
		if got := backend.RetrySeconds(fault.Exhausted(wait, "x")); got != want {
			t.Errorf("%s: %d", wait, got)
		}
	}
}
