package mounts

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk/treewalktest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
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
		err := NoDoors(t.Context(), []engine.Mount{{Destination: "/memory", SizeBytes: 1}, {Source: source, Destination: "/w", ReadOnly: true}})
		if want == "" && err != nil || want != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want it to name %q", source, err, want)
		}
	}
	if err := NoDoors(t.Context(), []engine.Mount{{Source: filepath.Join(plain, "absent"), Destination: "/w"}}); err == nil {
		t.Error("what can't be looked through was mounted")
	}
}

// TestDoorsEnd: a folder is as an agent made it, and looking through it ends: with a sentence where there is too much, and with
// the request.
func TestDoorsEnd(t *testing.T) {
	deep, shallow := t.TempDir(), t.TempDir()
	treewalktest.Deepen(t, deep, 3_000)
	treewalktest.Deepen(t, shallow, 100)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for name, tc := range map[string]struct {
		ctx    context.Context //nolint:containedctx // of one case
		source string
		is     error
		says   string
	}{
		"too deep":            {t.Context(), deep, fault.ErrInvalid, deep + " has more than 200 directories in each other in \"a\", too much to look for sockets in it, which a container could connect to; mount less of it, or use the engine gvisor"},
		"deep":                {t.Context(), shallow, nil, ""},
		"the client has gone": {gone, shallow, context.Canceled, ""},
	} {
		err := NoDoors(tc.ctx, []engine.Mount{{Source: tc.source, Destination: "/w"}})
		if !errors.Is(err, tc.is) || tc.says != "" && err.Error() != tc.says {
			t.Errorf("%s: %v, want %v %s", name, err, tc.is, tc.says)
		}
	}
}

// TestDoorsWaitForNoPipe: who has a folder read-write exchanges directories of it with named pipes while it is looked through. Whatever
// is found, nobody waits for who writes to a pipe.
func TestDoorsWaitForNoPipe(t *testing.T) {
	folder := t.TempDir()
	stop := treewalktest.Exchange(t, folder)
	refused := 0
	for range 200 {
		if err := NoDoors(t.Context(), []engine.Mount{{Source: folder, Destination: "/w"}}); err != nil {
			refused++
		}
	}
	stop()
	t.Logf("%d of 200 looks were refused", refused)
}
