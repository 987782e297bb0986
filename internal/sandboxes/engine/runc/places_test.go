package runc

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestPlacesInAWrittenRoot: where something is to be mounted in a root that a guest wrote there
// is a directory, or nothing; links there are refused, at the end of a place or on the way.
func TestPlacesInAWrittenRoot(t *testing.T) {
	t.Parallel()
	shown := []engine.Mount{{Destination: "/workspace/data"}}
	for name, tt := range map[string]struct {
		change func(at func(string) string) error
		fine   bool
	}{
		"as it should be":        {func(func(string) string) error { return nil }, true},
		"without a place":        {func(at func(string) string) error { return os.RemoveAll(at("workspace")) }, true},
		"without /sys":           {func(at func(string) string) error { return os.Remove(at("sys")) }, true},
		"another link elsewhere": {func(at func(string) string) error { return os.Symlink("/etc", at("etc")) }, true},
		"/dev is a link": {func(at func(string) string) error {
			return errors.Join(os.Remove(at("dev")), os.Symlink("/proc", at("dev")))
		}, false},
		"/proc is a file": {func(at func(string) string) error {
			return errors.Join(os.Remove(at("proc")), os.WriteFile(at("proc"), nil, 0o600))
		}, false},
		"a place is a link": {func(at func(string) string) error {
			return errors.Join(os.Remove(at("workspace/data")), os.Symlink("/dev", at("workspace/data")))
		}, false},
		"a link on a place's way": {func(at func(string) string) error {
			return errors.Join(os.RemoveAll(at("workspace")), os.Symlink("/", at("workspace")))
		}, false},
		"a link that leads nowhere": {func(at func(string) string) error {
			return errors.Join(os.Remove(at("sys")), os.Symlink("nowhere", at("sys")))
		}, false},
	} {
		root := t.TempDir()
		at := func(name string) string { return filepath.Join(root, name) }
		for _, dir := range []string{"dev", "proc", "sys", "workspace/data"} {
			if err := os.MkdirAll(at(dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := tt.change(at); err != nil {
			t.Fatal(err)
		}
		err := checkPlaces(root, shown)
		if tt.fine && err != nil || !tt.fine && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
