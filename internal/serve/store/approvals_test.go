package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

func open(t *testing.T, path string) *store.Approvals {
	t.Helper()
	s, err := store.OpenApprovals(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	approvaltest.TestStore(t, func(t *testing.T) (approval.Store, func() approval.Store) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "a dir?", "approvals.db")
		s := open(t, path)
		return s, func() approval.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, path)
		}
	})
}

// TestFile: the settings that durability rests on, the mode, and that a newer
// file is refused and left alone.
func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals.db")
	s := open(t, path)
	if err := s.SetCursor(t.Context(), "hook", 7); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var mode string
	if err := db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("%s, %v", mode, err)
	}
	if _, err := db.ExecContext(t.Context(), "PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = store.OpenApprovals(t.Context(), path)
	if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "was written by a newer Cofferdam") {
		t.Error(err)
	}
}

// TestCursors: where a webhook stands outlives the daemon.
func TestCursors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals.db")
	s := open(t, path)
	if _, ok, err := s.Cursor(t.Context(), "hook"); ok || err != nil {
		t.Error(ok, err)
	}
	if err := errors.Join(s.SetCursor(t.Context(), "hook", 7), s.SetCursor(t.Context(), "hook", 8), s.Close()); err != nil {
		t.Fatal(err)
	}
	if n, ok, err := open(t, path).Cursor(t.Context(), "hook"); n != 8 || !ok || err != nil {
		t.Error(n, ok, err)
	}
}

// TestUnusable: what is no database, or a directory that is not there to be
// made, is told with its path.
func TestUnusable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "approvals.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, filepath.Join(path, "below", "a.db")} {
		if _, err := store.OpenApprovals(context.Background(), p); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), p) {
			t.Error(err)
		} else if store.IsDamage(err) != (p == path) {
			t.Errorf("damage or not: %v", err)
		}
	}
}
