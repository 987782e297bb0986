package mounts

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
)

// field is a project that an attacker may write to, and what it must not reach.
type field struct {
	dir, data, secret string
	mount             engine.Mount
}

func newField(t *testing.T) field {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	f := field{dir: dir, data: filepath.Join(dir, "project", "data"), secret: filepath.Join(dir, "secret")}
	for _, d := range []string{f.data, f.secret, filepath.Join(dir, "pins"), filepath.Join(dir, "empty")} {
		check(t, os.MkdirAll(d, 0o755))
	}
	check(t, os.WriteFile(filepath.Join(f.data, "key"), []byte("ours"), 0o600))
	check(t, os.WriteFile(filepath.Join(f.secret, "key"), []byte("secret"), 0o600))
	p, err := hostpath.Resolve(f.data, nil)
	check(t, err)
	p.Close()
	f.mount = engine.Mount{Source: p.Name, Destination: "/data", Origin: p.ID}
	return f
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// alone runs something in a mount namespace that ends with it.
func alone(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("mounts need root")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends, and its namespace with it
		if err := Alone(); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}

// flips are ways in which an attacker puts something else in a path's place, and back.
func flips(f field) map[string]func() {
	aside := f.data + ".aside"
	back := func() { _ = os.Rename(aside, f.data) } // it may be there already
	return map[string]func(){
		"link": func() {
			_ = os.Rename(f.data, aside)
			_ = os.Symlink(f.secret, f.data)
			_ = os.Remove(f.data)
			back()
		},
		"rename": func() {
			_ = os.Rename(f.data, aside)
			_ = os.Rename(f.secret, f.data)
			_ = os.Rename(f.data, f.secret)
			back()
		},
		"exchange": func() { _ = unix.Renameat2(unix.AT_FDCWD, f.data, unix.AT_FDCWD, f.secret, unix.RENAME_EXCHANGE) },
		"fifo": func() {
			_ = os.Rename(f.data, aside)
			_ = unix.Mkfifo(f.data, 0o600)
			_ = os.Remove(f.data)
			back()
		},
		"above": func() { // a link on the way
			project := filepath.Dir(f.data)
			_ = os.Rename(project, project+".aside")
			_ = os.Symlink(f.dir, project)
			_ = os.Rename(f.secret, filepath.Join(f.dir, "data"))
			_ = os.Rename(filepath.Join(f.dir, "data"), f.secret)
			_ = os.Remove(project)
			_ = os.Rename(project+".aside", project)
		},
	}
}

// TestPinsAgainstFlips: whatever is put in a source's place, and however fast, a place shows
// what was checked, or nothing. The control is a mount by name, which shows the secret.
func TestPinsAgainstFlips(t *testing.T) {
	for name := range flips(field{}) {
		t.Run(name, func(t *testing.T) {
			f := newField(t)
			flip := flips(f)[name]
			stop, stopped := make(chan struct{}), make(chan struct{})
			byName, shown := 0, 0
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					default:
						flip()
					}
				}
			}()
			alone(t, func() {
				for n := 0; n < rounds || byName == 0 && n < 100*rounds && name != "fifo"; n++ {
					at := filepath.Join(f.dir, "pins", "0")
					err := Show(f.mount, at, unix.MountAttr{}, nil)
					if err == nil {
						if key, _ := os.ReadFile(filepath.Join(at, "key")); string(key) != "ours" {
							t.Errorf("round %d: the place shows %q", n, key)
						}
						shown++
						_ = unix.Unmount(at, unix.MNT_DETACH) // of this namespace
					} else if !errors.Is(err, fault.ErrConflict) {
						t.Errorf("round %d: %v", n, err)
					}
					if old := filepath.Join(f.dir, "empty"); unix.Mount(f.data, old, "", unix.MS_BIND, "") == nil {
						if key, _ := os.ReadFile(filepath.Join(old, "key")); string(key) == "secret" {
							byName++
						}
						_ = unix.Unmount(old, unix.MNT_DETACH)
					}
				}
			})
			close(stop)
			<-stopped
			t.Logf("of %d rounds %d were shown what was checked, and a mount by name showed the secret %d times", rounds, shown, byName)
			if name != "fifo" && byName == 0 {
				t.Error("the control was never led astray: the flips prove nothing")
			}
		})
	}
}

// TestPinsOfBoundSources: what somebody mounts over a source is not what was checked.
func TestPinsOfBoundSources(t *testing.T) {
	f := newField(t)
	at := filepath.Join(f.dir, "pins", "0")
	alone(t, func() {
		if err := Show(f.mount, at, unix.MountAttr{}, nil); err != nil { // the control
			t.Error(err)
		}
		if err := errors.Join(unix.Unmount(at, 0), unix.Mount(f.secret, f.data, "", unix.MS_BIND, "")); err != nil {
			t.Error(err)
		}
		if err := Show(f.mount, at, unix.MountAttr{}, nil); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("a source with another directory mounted over it: %v", err)
		}
	})
}

// TestPinsCover: what lies over a part of another mount is laid there by the stage, and a
// directory that was moved takes nothing along that is hidden in it.
func TestPinsCover(t *testing.T) {
	f := newField(t)
	project := filepath.Dir(f.data)
	empty, none := filepath.Join(f.dir, "empty"), filepath.Join(f.dir, "none")
	check(t, os.WriteFile(none, nil, 0o444))
	check(t, os.WriteFile(filepath.Join(project, "policy.yaml"), []byte("policy"), 0o600))
	p, err := hostpath.Resolve(project, nil)
	check(t, err)
	p.Close()
	pins := Pins{
		Mounts: []engine.Mount{
			{Source: project, Destination: "/w", Origin: p.ID},
			{Source: filepath.Join(project, "policy.yaml"), Destination: "/w/policy.yaml", ReadOnly: true, Origin: hostpath.Identity{Type: hostpath.File}},
			{Source: none, Destination: "/w/data/key", ReadOnly: true, Around: f.mount.Origin},
		},
		At:    func(n int) string { return filepath.Join(f.dir, "pins", string(rune('0'+n))) },
		Empty: empty,
	}
	alone(t, func() {
		if err := pins.Pin(); err != nil {
			t.Error(err)
		}
		if key, err := os.ReadFile(filepath.Join(pins.At(0), "data", "key")); err != nil || len(key) > 0 {
			t.Errorf("what is hidden reads %q, %v", key, err)
		}
		if err := os.WriteFile(filepath.Join(pins.At(0), "policy.yaml"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("the policy can be written to: %v", err)
		}
		if err := os.WriteFile(filepath.Join(pins.At(0), "fine"), nil, 0o600); err != nil { // the control
			t.Error(err)
		}
	})
	check(t, os.Rename(f.data, f.data+"2"))
	check(t, os.Mkdir(f.data, 0o755))
	check(t, os.WriteFile(filepath.Join(f.data, "key"), []byte("a dummy"), 0o600))
	alone(t, func() {
		if err := pins.Pin(); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("with what is hidden moved away: %v", err)
		}
	})
	if key, err := os.ReadFile(filepath.Join(f.data+"2", "key")); err != nil || string(key) != "ours" {
		t.Errorf("on the host: %q, %v", key, err)
	}
}

// TestPinShowsNoKernels: somebody builds a root in a project between the check of a mount and its laying, and the host's /proc
// would come with it.
func TestPinShowsNoKernels(t *testing.T) {
	for kind, want := range map[string]error{"tmpfs": nil, "proc": fault.ErrConflict} {
		alone(t, func() {
			f := newField(t)
			below := filepath.Join(f.data, "root")
			check(t, os.Mkdir(below, 0o755))
			check(t, unix.Mount(kind, below, kind, 0, ""))
			pins := Pins{Mounts: []engine.Mount{f.mount}, At: func(int) string { return filepath.Join(f.dir, "pins", "0") }, Empty: filepath.Join(f.dir, "empty")}
			if err := pins.Pin(); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("with a %s in it: %v", kind, err)
			}
		})
	}
}
