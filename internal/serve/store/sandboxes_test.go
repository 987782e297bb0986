package store_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal/journaltest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

func openSandboxes(tb testing.TB, path string) *store.Sandboxes {
	tb.Helper()
	s, err := store.OpenSandboxes(context.Background(), path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func TestSandboxes(t *testing.T) {
	t.Parallel()
	journaltest.TestJournal(t, func(t *testing.T) (sandbox.Journal, func() sandbox.Journal) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "sandboxes.db")
		s := openSandboxes(t, path)
		return s, func() sandbox.Journal {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openSandboxes(t, path)
		}
	})
}

// TestSandboxesArePruned: the oldest events go, and the numbers go on.
func TestSandboxesArePruned(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sandboxes.db")
	s := openSandboxes(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const many = sandbox.KeptEvents + 10_000
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO events (at, sandbox, run, token, was, state, reason) SELECT i, 'sb1', '', '', '', 'running', '' FROM n`, many-1)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	ev, err := s.Move(t.Context(), sandbox.Entry{Info: sandbox.Info{ID: "sb1"}}, sandbox.Event{Sandbox: "sb1", To: sandbox.Running})
	if err != nil || ev.Seq != many {
		t.Fatal(ev, err)
	}
	events, err := s.Events(t.Context(), 0, 1)
	if err != nil || len(events) != 1 || events[0].Seq != many-sandbox.KeptEvents+1 {
		t.Errorf("the oldest is %+v, %v", events, err)
	}
}

// BenchmarkSandboxes is what a change of state costs.
func BenchmarkSandboxes(b *testing.B) {
	s := openSandboxes(b, filepath.Join(b.TempDir(), "sandboxes.db"))
	for b.Loop() {
		_, err := s.Move(b.Context(), sandbox.Entry{Info: sandbox.Info{ID: "sb1"}, State: sandbox.Running}, sandbox.Event{Time: time.Now(), Sandbox: "sb1", To: sandbox.Running})
		if err != nil {
			b.Fatal(err)
		}
	}
}
