package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestAnArchiveIsPutWhereOnlyItsOwnerReaches: not into the installation, not where an agent could write, through no
// link that leads there, and over nothing.
func TestAnArchiveIsPutWhereOnlyItsOwnerReaches(t *testing.T) {
	project, mine, _ := grounds(t)
	paths, err := config.DefaultPaths()
	fine(t, err)
	fine(t, os.WriteFile(filepath.Join(mine, "there.tar"), nil, 0o600))
	fine(t, os.Symlink(project, filepath.Join(mine, "to-project")))
	fine(t, os.Symlink(paths.State, filepath.Join(mine, "to-state")))
	fine(t, os.Symlink("nothing", filepath.Join(mine, "dangling")))
	at := time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)
	for to, want := range map[string]string{
		filepath.Join(paths.State, "b.tar"):        "this installation's own",
		paths.State:                                "this installation's own",
		filepath.Join(mine, "to-state", "b.tar"):   "this installation's own",
		filepath.Join(project, "b.tar"):            "sandboxes could write in",
		filepath.Join(mine, "to-project", "b.tar"): "sandboxes could write in",
		project:                          "sandboxes could write in",
		filepath.Join(mine, "there.tar"): "replaces none",
		filepath.Join(mine, "dangling"):  "a link that leads to nothing",
		filepath.Join(mine, "no", "b"):   "make it first",
	} {
		if _, err := backupPlace(to, paths, at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", to, err, want)
		}
	}
	for to, want := range map[string]string{filepath.Join(mine, "b.tar"): "b.tar", mine: "cofferdam-20261129-200000.tar"} {
		if got, err := backupPlace(to, paths, at); err != nil || got.Name != filepath.Join(mine, want) {
			t.Errorf("%s: %s, %v", to, got.Name, err)
		}
	}
	fine(t, os.Remove(paths.Written()))
	fine(t, os.Mkdir(paths.Written(), 0o700)) // it can't be read
	if _, err := backupPlace(filepath.Join(mine, "b.tar"), paths, at); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("where sandboxes could write is not known: %v", err)
	}
}

// TestABackupThatIsGivenUpLeavesNothing: neither its file, nor one by a hidden name, and its code is an interrupt's.
func TestABackupThatIsGivenUpLeavesNothing(t *testing.T) {
	_, mine, _ := grounds(t)
	for _, given := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		want := 0
		if given {
			cancel()
			want = exitSignalBase + int(syscall.SIGINT)
		}
		to := filepath.Join(mine, "b.tar")
		if code := execute(ctx, []string{"backup", to}); code != want {
			t.Errorf("given up: %t: exit code %d, want %d", given, code, want)
		}
		cancel()
		left, err := os.ReadDir(mine)
		fine(t, err)
		if given == (len(left) > 0) {
			t.Errorf("given up: %t: there are %v", given, left)
		}
		fine(t, os.RemoveAll(to))
	}
}
