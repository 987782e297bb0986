package tokentest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// noon is when the suite's first token was made.
func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.UTC) }

// TestStore is the suite. open makes an empty store; reopen gives what is there
// after the last one was closed or lost, or is nil for a store that forgets.
func TestStore(t *testing.T, open func(t *testing.T) (s token.Store, reopen func() token.Store)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, token.Store){
		"round trip": testRoundTrip, "names": testNames, "order": testOrder,
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := open(t)
			test(t, s)
		})
	}
	t.Run("reopened", func(t *testing.T) {
		s, reopen := open(t)
		if reopen == nil {
			t.Skip("this store forgets")
		}
		want := fullToken()
		putTokens(t, s, want)
		wantSame(t, reopen(), want)
	})
}

// fullToken has a value in each field.
func fullToken() token.Token {
	return token.Token{
		ID: "tok-000000000001", Name: "ci", Created: noon(), Expires: noon().Add(time.Hour), Revoked: noon().Add(time.Minute),
		Policy: "default", Policies: []string{"data", "web"}, Admin: true, SecretSHA256: "00ff",
		Quota: token.Quota{Sandboxes: 3, CPU: 1.5, MemoryBytes: 1 << 40, DiskBytes: 1 << 41, CreatesPerMinute: 60},
	}
}

func putTokens(t *testing.T, s token.Store, tokens ...token.Token) {
	t.Helper()
	for _, one := range tokens {
		if err := s.Put(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
}

func wantSame(t *testing.T, s token.Store, want ...token.Token) {
	t.Helper()
	got, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func testRoundTrip(t *testing.T, s token.Store) {
	t.Helper()
	got, err := s.List(t.Context())
	if err != nil || len(got) != 0 {
		t.Fatalf("an empty store has %v, %v", got, err)
	}
	plain := token.Token{ID: "tok-000000000002", Name: "plain", Created: noon().Add(time.Second), Policy: "default", SecretSHA256: "01"}
	putTokens(t, s, fullToken(), plain)
	wantSame(t, s, fullToken(), plain)
	changed := fullToken()
	changed.Quota.Sandboxes, changed.Policies, changed.SecretSHA256 = 4, nil, "02"
	putTokens(t, s, changed)
	wantSame(t, s, changed, plain)
}

// testNames: a name is one live token's, and free again once it is revoked.
func testNames(t *testing.T, s token.Store) {
	t.Helper()
	first := token.Token{ID: "tok-000000000001", Name: "ci", Created: noon(), Policy: "default", SecretSHA256: "01"}
	second := token.Token{ID: "tok-000000000002", Name: "ci", Created: noon().Add(time.Second), Policy: "default", SecretSHA256: "02"}
	putTokens(t, s, first)
	if err := s.Put(t.Context(), second); !errors.Is(err, fault.ErrConflict) {
		t.Fatalf("a second token of the name: %v", err)
	}
	wantSame(t, s, first)
	putTokens(t, s, first) // again, itself
	first.Revoked = noon().Add(time.Minute)
	putTokens(t, s, first, second)
	wantSame(t, s, first, second)
	first.Revoked = time.Time{}
	if err := s.Put(t.Context(), first); !errors.Is(err, fault.ErrConflict) {
		t.Fatalf("a token came back to life under a name that another has: %v", err)
	}
	wantSame(t, s, token.Token{ID: first.ID, Name: "ci", Created: noon(), Revoked: noon().Add(time.Minute), Policy: "default", SecretSHA256: "01"}, second)
}

func testOrder(t *testing.T, s token.Store) {
	t.Helper()
	old := token.Token{ID: "tok-000000000009", Name: "old", Created: noon(), Policy: "default", SecretSHA256: "01"}
	recent := token.Token{ID: "tok-000000000001", Name: "recent", Created: noon().Add(time.Nanosecond), Policy: "default", SecretSHA256: "02"}
	putTokens(t, s, recent, old)
	wantSame(t, s, old, recent)
}
