package docker

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// TestHiddenFilesThatWereMovedAreRefused: another sandbox, which may write to the directory, moved what an
// ignore file hides, after that was looked at and before the ground is laid. It is refused, as by the pins of gVisor and runc, which are the control.
func TestHiddenFilesThatWereMovedAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("mounts need root")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	orFail(t, err)
	conf := filepath.Join(dir, "project", "conf")
	for _, d := range []string{conf, filepath.Join(dir, "place"), filepath.Join(dir, "pins"), filepath.Join(dir, "empty")} {
		orFail(t, os.MkdirAll(d, 0o755))
	}
	none := filepath.Join(dir, "none")
	orFail(t, os.WriteFile(none, nil, 0o644))
	orFail(t, os.WriteFile(filepath.Join(conf, "key"), []byte("what nobody inside may read"), 0o644))
	identity := func(path string) hostpath.Identity {
		p, err := hostpath.Resolve(path, nil)
		orFail(t, err)
		defer p.Close()
		return p.ID
	}
	spec := engine.Spec{Mounts: []engine.Mount{
		{Source: filepath.Dir(conf), Destination: "/w", Origin: identity(filepath.Dir(conf))},
		{Source: none, Destination: "/w/conf/key", ReadOnly: true, Around: identity(conf)},
	}}
	orFail(t, os.Rename(conf, conf+"2"))
	orFail(t, os.Mkdir(conf, 0o755))
	orFail(t, os.WriteFile(filepath.Join(conf, "key"), nil, 0o644))
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the namespace goes with the thread
		if err := mounts.Alone(); err != nil {
			t.Error(err)
			return
		}
		pins := mounts.Pins{Mounts: spec.Mounts, At: func(n int) string { return filepath.Join(dir, "pins", string(rune('0'+n))) }, Empty: filepath.Join(dir, "empty")}
		if err := pins.Pin(); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("the control: %v", err)
		}
		g, p := ground{place: filepath.Join(dir, "place")}, planOf(spec, dir)
		p.weak = true // owners are another matter
		if err := unix.Mount("tmpfs", g.place, "tmpfs", 0, "size=1m"); err != nil {
			t.Error(err)
			return
		}
		laid := g.layBinds(p)
		if !errors.Is(laid, fault.ErrConflict) {
			shown, err := os.ReadFile(filepath.Join(g.bindPlace(0), "conf2", "key"))
			t.Errorf("laying the ground: %v; the container is shown conf2/key, which is hidden: %q, %v", laid, shown, err)
		}
	}()
	<-done
}

func orFail(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
