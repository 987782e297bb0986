package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsGivenUpOrTold: only what the kernel lacks is told of and gone without.
func TestWhatIsGivenUpOrTold(t *testing.T) {
	t.Parallel()
	missing := errors.New("no such thing here")
	for _, c := range []struct {
		err     error
		entered bool
		fails   bool
	}{{nil, true, false}, {fmt.Errorf("asked: %w", missing), false, false}, {errors.New("refused"), false, true}} {
		var told strings.Builder
		entered, err := giveUp(func() error { return c.err }, missing, "files", slog.New(slog.NewTextHandler(&told, nil)))
		if entered != c.entered || (err != nil) != c.fails {
			t.Errorf("%v: %v %v", c.err, entered, err)
		}
		if silent := told.Len() == 0; silent != (c.entered || c.fails) {
			t.Errorf("%v: the log says %q", c.err, &told)
		}
	}
}

// TestWhatCanStillBeRead: a role that sees the daemon's folder afterwards does not start.
func TestWhatCanStillBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := (confinement{Outside: dir}).checkApart(); err == nil {
		t.Error("the daemon's folder is in reach, and the gateway starts")
	}
	if err := (confinement{Outside: filepath.Join(dir, "gone")}).checkApart(); err != nil {
		t.Error(err)
	}
}

// TestWhereTheResolversFilesAre: a link's target is replaced in its own folder.
func TestWhereTheResolversFilesAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	etc, run := filepath.Join(dir, "etc"), filepath.Join(dir, "run/resolve")
	if err := errors.Join(os.MkdirAll(etc, 0o700), os.MkdirAll(run, 0o700), os.WriteFile(filepath.Join(run, "stub"), nil, 0o600),
		os.Symlink(filepath.Join(run, "stub"), filepath.Join(etc, "resolv.conf")), os.WriteFile(filepath.Join(etc, "hosts"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := resolverFolders(etc); !slices.Equal(got, []string{etc, run}) {
		t.Error(got)
	}
}
