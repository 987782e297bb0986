package copies

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestUnreadableBlueprintsFollowNoLink: what a sandbox may write to that has an unreadable file
// is not known, so no link is followed until it is gone.
func TestUnreadableBlueprintsFollowNoLink(t *testing.T) {
	t.Parallel()
	dir, shown := t.TempDir(), t.TempDir()
	s := NewBlueprints(dir, dir, nil, slog.New(slog.DiscardHandler))
	link := filepath.Join(shown, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.pathOf("sb-1"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(source string) error {
		c, err := mountpolicy.Rules{Writable: s.Writable}.Check(mountpolicy.Mount{Source: source, Destination: "/w"})
		if err == nil {
			c.Close()
		}
		return err
	}
	if err := check(link); err != nil { // the control
		t.Fatal(err)
	}
	s.Sweep(func(string) bool { return true })
	if err := check(link); err == nil || !strings.Contains(err.Error(), "is not known") || !strings.Contains(err.Error(), link) {
		t.Errorf("a link is followed: %v", err)
	}
	if err := check(shown); err != nil {
		t.Errorf("without a link: %v", err)
	}
	s.Forget("sb-1")
	if err := check(link); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}
