package microvm

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestSocketsOfOthers: the monitor's folder is the monitor's, and what it puts there in its
// socket's place has root speak with nobody else.
func TestSocketsOfOthers(t *testing.T) {
	b := bundle{dir: t.TempDir()}
	if err := os.MkdirAll(b.ownDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "s")
	for _, path := range []string{other, filepath.Join(b.ownDir(), "good")} {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	for name, put := range map[string]func(at string) error{
		"link":      func(at string) error { return os.Symlink(other, at) },
		"hard link": func(at string) error { return os.Link(other, at) },
		"file":      func(at string) error { return os.WriteFile(at, nil, 0o600) },
	} {
		at := filepath.Join(b.ownDir(), "put")
		if err := put(at); err != nil {
			t.Fatal(err)
		}
		if path, _, err := b.reachable("put"); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s: got %s, %v", name, path, err)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
	path, closed, err := b.reachable("good")
	if err != nil {
		t.Fatal(err)
	}
	defer closed()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the control: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
