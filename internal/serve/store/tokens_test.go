package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

func openTokens(t *testing.T, path string) *store.Tokens {
	t.Helper()
	s, err := store.OpenTokens(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTokens(t *testing.T) {
	t.Parallel()
	tokentest.TestStore(t, func(t *testing.T) (token.Store, func() token.Store) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "tokens.db")
		s := openTokens(t, path)
		return s, func() token.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openTokens(t, path)
		}
	})
}

// TestTokensHaveNoSecret: the file holds what a secret is checked with, and
// nothing that could be used as one.
func TestTokensHaveNoSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTokens(t, filepath.Join(dir, "tokens.db"))
	b, err := token.Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	made, secret, err := b.Issue(t.Context(), token.Grant{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found := false
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found = found || strings.Contains(string(data), made.SecretSHA256)
		if strings.Contains(string(data), strings.TrimPrefix(secret, "e2b_")) {
			t.Errorf("%s has the secret", e.Name())
		}
	}
	if !found {
		t.Error("no file has its digest; the test looks in the wrong place")
	}
}
