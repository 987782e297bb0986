package daemon

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// TestTokensThatAreGone: a file of tokens that was lost, or emptied, is refused where tokens were
// made, also by an earlier version; one of an installation that never had any is not, nor one
// whose tokens are all revoked.
func TestTokensThatAreGone(t *testing.T) {
	t.Parallel()
	put := func(t *testing.T, m markedTokens, change func(*token.Token)) {
		t.Helper()
		one := token.Token{ID: "tk_1", Name: "nightly", Created: time.Now(), SecretSHA256: "00"}
		if change != nil {
			change(&one)
		}
		must(t, m.Put(t.Context(), one))
	}
	lose := func(t *testing.T, m markedTokens) {
		t.Helper()
		for _, name := range []string{m.path, m.path + "-wal", m.path + "-shm"} {
			if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		before  func(t *testing.T, m markedTokens)
		refused bool
	}{
		"never any": {func(*testing.T, markedTokens) {}, false},
		"there": {func(t *testing.T, m markedTokens) {
			t.Helper()
			put(t, m, nil)
		}, false},
		"revoked": {func(t *testing.T, m markedTokens) {
			t.Helper()
			put(t, m, func(one *token.Token) { one.Revoked = time.Now() })
		}, false},
		"lost": {func(t *testing.T, m markedTokens) {
			t.Helper()
			put(t, m, nil)
			lose(t, m)
		}, true},
		"lost, of an earlier version": {func(t *testing.T, m markedTokens) {
			t.Helper()
			put(t, m, nil)
			must(t, os.Remove(m.mark))
			must(t, m.checkTokens(t.Context()))
			lose(t, m)
		}, true},
		"begun anew": {func(t *testing.T, m markedTokens) {
			t.Helper()
			put(t, m, nil)
			lose(t, m)
			must(t, os.Remove(m.mark))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			open := func() markedTokens {
				s, err := store.OpenTokens(t.Context(), filepath.Join(dir, "tokens.db"))
				must(t, err)
				t.Cleanup(func() { _ = s.Close() })
				return markedTokens{Store: s, mark: filepath.Join(dir, "tokens.made"), path: filepath.Join(dir, "tokens.db")}
			}
			c.before(t, open())
			err := open().checkTokens(t.Context())
			if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "put it back from a copy") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// TestAFirstTokenThatCouldNotBeMade: it is nowhere, and the next start looks for none.
func TestAFirstTokenThatCouldNotBeMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.OpenTokens(t.Context(), filepath.Join(dir, "tokens.db"))
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	m := markedTokens{Store: s, mark: filepath.Join(dir, "tokens.made"), path: filepath.Join(dir, "tokens.db")}
	one := token.Token{ID: "tk_1", Name: "nightly", Created: time.Now(), SecretSHA256: "00"}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := m.Put(ended, one); err == nil {
		t.Fatal("the test has not made the store fail")
	}
	if err := m.checkTokens(t.Context()); err != nil {
		t.Errorf("the next start: %v", err)
	}
	must(t, m.Put(t.Context(), one))
	if _, err := os.Lstat(m.mark); err != nil {
		t.Errorf("a token is there without the mark: %v", err)
	}
}
