package mounts

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// TestMountsWithDoors: a socket or a named pipe anywhere in a mount refuses it, by name; a
// folder without one is mounted.
func TestMountsWithDoors(t *testing.T) {
	socket, pipe, plain := t.TempDir(), t.TempDir(), t.TempDir()
	if err := unix.Mkdir(filepath.Join(socket, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(socket, "deep", "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := unix.Mkfifo(filepath.Join(pipe, "p"), 0o600); err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		socket: "deep/s", filepath.Join(socket, "deep", "s"): "deep/s", pipe: "/p", plain: "",
	} {
		err := NoDoors([]engine.Mount{{Destination: "/memory", SizeBytes: 1}, {Source: source, Destination: "/w", ReadOnly: true}})
		if want == "" && err != nil || want != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want it to name %q", source, err, want)
		}
	}
	for most, want := range map[int]error{1: errMany, 2: nil} { // the folder, and the one in it
		folder := t.TempDir()
		if err := unix.Mkdir(filepath.Join(folder, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := firstDoor(engine.Mount{Source: folder, Destination: "/w"}, most); !errors.Is(err, want) {
			t.Errorf("of %d entries at most: %v", most, err)
		}
	}
	if err := NoDoors([]engine.Mount{{Source: filepath.Join(plain, "absent"), Destination: "/w"}}); err == nil {
		t.Error("what can't be looked through was mounted")
	}
}
