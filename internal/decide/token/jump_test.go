package token_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestWhatExpiredStaysExpired: a token that expired by the host's clock is refused after
// that has gone back, by this daemon and the next one; what was going on for it has ended.
func TestWhatExpiredStaysExpired(t *testing.T) {
	day := 24 * time.Hour
	b, s, c := book(t)
	t1, short := issue(t, b, token.Grant{Name: "short", Lasts: day})
	_, long := issue(t, b, token.Grant{Name: "long", Lasts: 60 * day})
	_, never := issue(t, b, token.Grant{Name: "never"})
	live := func(on *token.Book, wantShort, wantLong bool) {
		t.Helper()
		for secret, want := range map[string]bool{short: wantShort, long: wantLong, never: true} {
			if got, ok := on.Check(secret); ok != want {
				t.Errorf("the token %q is taken: %v", got.Name, ok)
			}
		}
	}
	live(b, true, true)
	during, stop := b.During(t.Context(), t1.ID)
	defer stop()
	c.leap(30 * day)
	live(b, false, true)
	if err := during.Err(); err == nil {
		t.Error("what goes on for it has not ended")
	}
	c.leap(0)
	live(b, false, true)
	if b.Live(t1.ID) {
		t.Error("it lives again")
	}
	again, err := token.Open(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	live(again, false, true)
	c.leap(-30 * day)
	c.set(noon().Add(61 * day)) // time that has passed, whatever the host's clock says
	live(again, false, false)
}

// TestATokenLastsNoLonger: one that is made while the host's clock is ahead is not longer
// valid than it says once that is back; one that would have expired at once is not made.
func TestATokenLastsNoLonger(t *testing.T) {
	day := 24 * time.Hour
	b, _, c := book(t)
	c.leap(30 * day)
	if _, _, err := b.Issue(t.Context(), token.Grant{Name: "short", Lasts: day}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("it is made: %v", err)
	}
	made, _ := issue(t, b, token.Grant{Name: "long", Lasts: 60 * day})
	if want := noon().Add(60 * day); !made.Expires.Equal(want) {
		t.Errorf("it expires at %v, not %v", made.Expires, want)
	}
}
