package microvm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTakeLeavesNoPart: where a file of the monitor's has to be copied to another file system,
// and that is full, nothing of it is left there.
func TestTakeLeavesNoPart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root mounts")
	}
	from, other := filepath.Join(t.TempDir(), "memory"), t.TempDir()
	if err := errors.Join(os.WriteFile(from, make([]byte, 3<<20), 0o600), unix.Mount("tmpfs", other, "tmpfs", 0, "size=1m")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(other, 0); err != nil {
			t.Error(err)
		}
	})
	to := filepath.Join(other, "memory")
	if err := takeFile(from, to); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("of 3 MB on a file system of one: %v", err)
	}
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part of it is left (%v)", err)
	}
	if err := errors.Join(os.Truncate(from, 4<<10), takeFile(from, to)); err != nil {
		t.Errorf("INCONCLUSIVE: what has room is not taken: %v", err)
	}
}

// TestTakeWantsAFile: what the monitor has put in a file's place is not taken, and nothing that
// a link leads to is touched.
func TestTakeWantsAFile(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func(at string) error{
		"a pipe":      func(at string) error { return unix.Mkfifo(at, 0o600) },
		"a directory": func(at string) error { return os.Mkdir(at, 0o700) },
		"a device":    func(at string) error { return unix.Mknod(at, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
		"a link":      func(at string) error { return os.Symlink(secret, at) },
		"nothing":     func(string) error { return nil },
	} {
		from, to := filepath.Join(dir, name), filepath.Join(dir, name+" taken")
		if err := put(from); err != nil {
			t.Fatal(err)
		}
		if err := takeFile(from, to); err == nil {
			t.Errorf("%s is taken for a file", name)
		}
		if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is in the image (%v)", name, err)
		}
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file that the link leads to: %v, %v", info, err)
	}
}

// TestTakeWhileItIsExchanged: a monitor exchanges its file for a link as fast as it can. Each
// time the image gets the file that was looked at, or an error tells that it did not.
func TestTakeWhileItIsExchanged(t *testing.T) {
	dir := t.TempDir()
	from, to, other := filepath.Join(dir, "memory"), filepath.Join(dir, "taken"), filepath.Join(dir, "other")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE) // one of both may be away
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	whole, told := 0, 0
	for late := time.Now().Add(time.Minute); (whole < 100 || told == 0) && time.Now().Before(late); {
		for _, path := range []string{from, to, other} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Symlink("/dev/zero", other), os.WriteFile(from, []byte("memory"), 0o600)); err != nil {
			t.Fatal(err)
		}
		err := takeFile(from, to)
		info, statErr := os.Lstat(to)
		switch {
		case err == nil && (statErr != nil || !info.Mode().IsRegular()):
			t.Fatalf("the image has %v (%v), and take says nothing", info, statErr)
		case err == nil:
			whole++
		case statErr == nil && !info.Mode().IsRegular():
			told++ // the link was moved, and that is known
		}
	}
	if whole < 100 || told == 0 {
		t.Errorf("INCONCLUSIVE: %d files were taken, and %d times another was moved in its place", whole, told)
	}
}
