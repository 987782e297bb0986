package token_test

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// hands are a clock that a test sets.
type hands struct {
	mu   sync.Mutex
	now  time.Time
	jump time.Duration // of the host's
}

func (c *hands) Read() clock.Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return clock.Reading{Now: c.now, Wall: c.now.Add(c.jump)}
}

func (c *hands) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = at
}

// leap moves the host's clock alone, to so far off.
func (c *hands) leap(jump time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jump = jump
}

func noon() time.Time { return time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) }

func book(t *testing.T) (*token.Book, *tokentest.Memory, *hands) {
	t.Helper()
	s, c := tokentest.NewMemory(), &hands{now: noon()}
	b, err := token.Open(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	return b, s, c
}

func issue(t *testing.T, b *token.Book, g token.Grant) (token.Token, string) {
	t.Helper()
	issued, secret, err := b.Issue(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return issued, secret
}

func TestIssue(t *testing.T) {
	b, s, _ := book(t)
	made, secret := issue(t, b, token.Grant{Name: "ci", Policies: []string{"data"}})
	if !regexp.MustCompile(`^e2b_[0-9a-f]{40}$`).MatchString(secret) || !regexp.MustCompile(`^tok-[0-9a-f]{12}$`).MatchString(made.ID) {
		t.Errorf("%s %s", secret, made.ID)
	}
	if made.Policy != "default" || !made.May("default") || !made.May("data") || made.May("web") || made.May("") {
		t.Errorf("%+v", made)
	}
	_, other := issue(t, b, token.Grant{Name: "ci-2", Policy: "web"})
	if other == secret {
		t.Error("two tokens have one secret")
	}
	kept, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range kept {
		if strings.Contains(one.SecretSHA256, strings.TrimPrefix(secret, "e2b_")) || len(one.SecretSHA256) != 64 {
			t.Errorf("the store has the secret: %+v", one)
		}
	}
	if users := b.Users("default"); !slices.Equal(users, []string{"ci"}) {
		t.Errorf("%v use default", users)
	}
}

// TestQuotasMadeBefore: what a new token is refused for is no reason to turn one away that was made when it was not.
func TestQuotasMadeBefore(t *testing.T) {
	t.Parallel()
	small := token.Quota{CPU: 0.001, MemoryBytes: 64, DiskBytes: 64}
	old, secret, err := token.Issue(noon(), token.Grant{Name: "old"})
	if err != nil {
		t.Fatal(err)
	}
	_, s, c := book(t)
	old.Quota = small
	if err := s.Put(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	b, err := token.Open(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	if got, is := b.Check(secret); !is || got.Quota != small {
		t.Errorf("%+v, %v", got, is)
	}
}

func TestIssueRefuses(t *testing.T) {
	for want, g := range map[string]token.Grant{
		"name \"\"":           {},
		"is not valid":        {Name: "a b"},
		"name \"-a\"":         {Name: "-a"},
		"63 letters":          {Name: strings.Repeat("a", 64)},
		"looks like an id":    {Name: "tok-000000000001"},
		"expired at":          {Name: "a", Expires: noon()},
		"can't be negative":   {Name: "a", Quota: token.Quota{Sandboxes: -1}},
		"can't be negative; ": {Name: "a", Quota: token.Quota{CPU: -1}},
		"memory is 64 bytes":  {Name: "a", Quota: token.Quota{MemoryBytes: 64}},
		"disk is 1048575":     {Name: "a", Quota: token.Quota{DiskBytes: 1<<20 - 1}},
		"CPU is 0.009 cores":  {Name: "a", Quota: token.Quota{CPU: 0.009}},
	} {
		if _, secret, err := token.Issue(noon(), g); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) || secret != "" {
			t.Errorf("%+v: %v, want %q", g, err, want)
		}
	}
	if _, _, err := token.Issue(noon(), token.Grant{Name: "a", Quota: token.Quota{CPU: 0.01, MemoryBytes: 1 << 20, DiskBytes: 1 << 20}}); err != nil {
		t.Errorf("the least that a sandbox may have: %v", err)
	}
	b, _, _ := book(t)
	issue(t, b, token.Grant{Name: "ci"})
	if _, _, err := b.Issue(t.Context(), token.Grant{Name: "ci"}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a second ci: %v", err)
	}
	if n := len(b.List()); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

func TestCheck(t *testing.T) {
	b, s, c := book(t)
	made, secret := issue(t, b, token.Grant{Name: "ci", Expires: noon().Add(time.Hour)})
	issue(t, b, token.Grant{Name: "other"})
	if got, ok := b.Check(secret); !ok || got.ID != made.ID {
		t.Errorf("%+v %t", got, ok)
	}
	for _, wrong := range []string{"", "e2b_", secret[:43], secret + "0", strings.ToUpper(secret), strings.TrimPrefix(secret, "e2b_"), made.ID, made.SecretSHA256, "ci"} {
		if got, ok := b.Check(wrong); ok || got.ID != "" {
			t.Errorf("%q is taken for %+v", wrong, got)
		}
	}
	c.set(noon().Add(time.Hour))
	if _, ok := b.Check(secret); ok {
		t.Error("an expired token is taken")
	}
	if n := s.Lists(); n != 1 {
		t.Errorf("the store was read %d times", n)
	}
}

func TestRevoke(t *testing.T) {
	b, s, _ := book(t)
	made, secret := issue(t, b, token.Grant{Name: "ci"})
	_, other := issue(t, b, token.Grant{Name: "other"})
	gone, err := b.Revoke(t.Context(), "ci")
	if err != nil || gone.ID != made.ID || !gone.Revoked.Equal(noon()) {
		t.Fatalf("%+v %v", gone, err)
	}
	if _, ok := b.Check(secret); ok {
		t.Error("a revoked token is taken")
	}
	if _, ok := b.Check(other); !ok {
		t.Error("another token is not taken any more")
	}
	if _, err := b.Revoke(t.Context(), "nobody"); !errors.Is(err, fault.ErrNotFound) {
		t.Error(err)
	}
	if _, err := b.Get("ci"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the name of a revoked token still finds it: %v", err)
	}
	again, err := token.Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := again.Check(secret); ok {
		t.Error("after a restart it is taken again")
	}
	second, _ := issue(t, b, token.Grant{Name: "ci"})
	if got, err := b.Get("ci"); err != nil || got.ID != second.ID {
		t.Errorf("%+v %v", got, err)
	}
}

// TestRevokeWithoutDisk: what can't be written is refused all the same, and can
// be written later.
func TestRevokeWithoutDisk(t *testing.T) {
	b, s, _ := book(t)
	made, secret := issue(t, b, token.Grant{Name: "ci"})
	s.Break(io.ErrShortWrite)
	if _, err := b.Revoke(t.Context(), made.ID); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "after a restart") {
		t.Errorf("%v", err)
	}
	if _, ok := b.Check(secret); ok {
		t.Error("it is taken")
	}
	if _, _, err := b.Issue(t.Context(), token.Grant{Name: "new"}); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("a token that nothing keeps was issued: %v", err)
	}
	s.Break(nil)
	if _, err := b.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	again, err := token.Open(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := again.Check(secret); ok {
		t.Error("after a restart it is taken again")
	}
}

// TestAtOnce: requests go on while tokens come and go.
func TestAtOnce(t *testing.T) {
	b, _, _ := book(t)
	_, secret := issue(t, b, token.Grant{Name: "steady"})
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for range 50 {
				name := "t" + strings.Repeat("x", i)
				if _, _, err := b.Issue(t.Context(), token.Grant{Name: name}); err != nil {
					t.Error(err)
				}
				if _, ok := b.Check(secret); !ok {
					t.Error("the steady token is refused")
				}
				if _, err := b.Revoke(t.Context(), name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if n := len(b.List()); n != 201 {
		t.Errorf("%d tokens", n)
	}
}

// TestDuring: what is done for a token ends with it, also when it was over before.
func TestDuring(t *testing.T) {
	b, _, c := book(t)
	short, _ := issue(t, b, token.Grant{Name: "short", Expires: noon().Add(time.Hour)})
	long, _ := issue(t, b, token.Grant{Name: "long"})
	first, stopFirst := b.During(t.Context(), long.ID)
	second, stopSecond := b.During(t.Context(), long.ID)
	other, stopOther := b.During(t.Context(), short.ID)
	defer stopSecond()
	defer stopOther()
	stopFirst()
	if first.Err() == nil || second.Err() != nil || other.Err() != nil {
		t.Fatalf("%v, %v, %v", first.Err(), second.Err(), other.Err())
	}
	if _, err := b.Revoke(t.Context(), "long"); err != nil {
		t.Fatal(err)
	}
	if err := context.Cause(second); second.Err() == nil || !errors.Is(err, token.ErrOver) || !errors.Is(err, fault.ErrForbidden) || other.Err() != nil {
		t.Errorf("after the revocation: %v, %v", err, other.Err())
	}
	c.set(noon().Add(2 * time.Hour))
	for _, id := range []string{long.ID, short.ID, "none"} {
		late, stop := b.During(t.Context(), id)
		if err := context.Cause(late); !errors.Is(err, token.ErrOver) {
			t.Errorf("%s: %v", id, err)
		}
		stop()
	}
}

// TestDuringExpiry: it ends by itself, when the time comes.
func TestDuringExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
		if err != nil {
			t.Fatal(err)
		}
		short, _ := issue(t, b, token.Grant{Name: "short", Expires: time.Now().Add(time.Hour)})
		ctx, stop := b.During(t.Context(), short.ID)
		defer stop()
		time.Sleep(time.Hour - time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("before: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		if err := context.Cause(ctx); !errors.Is(err, token.ErrOver) {
			t.Errorf("after: %v", err)
		}
	})
}
