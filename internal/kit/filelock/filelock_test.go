package filelock_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/filelock"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// copied makes a copy of this process's descriptor of a file, as a program that is being
// started has it until it runs.
func copied(t *testing.T, path string) {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, fd := range fds {
		if at, err := os.Readlink("/proc/self/fd/" + fd.Name()); err != nil || at != path {
			continue
		}
		number, err := strconv.Atoi(fd.Name())
		must(t, err)
		dup, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(dup) })
		return
	}
	t.Fatalf("nobody has %s open", path)
}

// TestACopyOfTheFileKeepsNobodyOut, however the lock was taken.
func TestACopyOfTheFileKeepsNobodyOut(t *testing.T) {
	of := func(take func(*os.File) (*filelock.Lock, error)) func(string) (*filelock.Lock, error) {
		return func(path string) (*filelock.Lock, error) {
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			must(t, err)
			return take(f)
		}
	}
	for name, take := range map[string]func(string) (*filelock.Lock, error){
		"Take": filelock.Take,
		"Await": func(path string) (*filelock.Lock, error) {
			return filelock.Await(t.Context(), path, time.Millisecond, nil)
		},
		"Of":     of(filelock.Of),
		"WaitOf": of(filelock.WaitOf),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			l, err := take(path)
			must(t, err)
			copied(t, path)
			if _, err := filelock.Take(path); !errors.Is(err, filelock.ErrHeld) {
				t.Fatalf("the control, a second taker: %v", err)
			}
			must(t, l.Release())
			again, err := filelock.Take(path)
			must(t, err)
			must(t, again.Release())
		})
	}
}

// TestAwait: the wait ends with the lock, with its context, or with what held says.
func TestAwait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := filelock.Take(path)
	must(t, err)
	tries := 0
	second, err := filelock.Await(t.Context(), path, time.Millisecond, func() error {
		if tries++; tries == 3 {
			must(t, l.Release())
		}
		return nil
	})
	must(t, err)
	if tries != 3 {
		t.Errorf("it was held %d times", tries)
	}
	enough := errors.New("enough")
	if _, err := filelock.Await(t.Context(), path, time.Millisecond, func() error { return enough }); !errors.Is(err, enough) {
		t.Errorf("held's word: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := filelock.Await(ctx, path, time.Hour, nil); !errors.Is(err, enough) {
		t.Errorf("the context's end: %v", err)
	}
	must(t, second.Release())
}

// TestALinkIsNotFollowed: a lock is no file elsewhere.
func TestALinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "lock")))
	if _, err := filelock.Take(filepath.Join(dir, "lock")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("through a link: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "elsewhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the link names: %v", err)
	}
}
