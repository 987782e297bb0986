// Package treewalktest makes for tests what a sandbox may make of a directory that it has read-write.
package treewalktest

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Deepen makes so many directories in each other, and takes them away with the test.
func Deepen(t *testing.T, dir string, depth int) {
	t.Helper()
	t.Cleanup(func() { flatten(t, dir) })
	in := openAt(t, unix.AT_FDCWD, dir)
	for range depth {
		mustNot(t, unix.Mkdirat(in, "a", 0o755))
		next := openAt(t, in, "a")
		mustNot(t, unix.Close(in))
		in = next
	}
	mustNot(t, unix.Close(in))
}

// flatten takes them away one by one: os.RemoveAll has all of them open.
func flatten(t *testing.T, dir string) {
	t.Helper()
	top := openAt(t, unix.AT_FDCWD, dir)
	defer unix.Close(top) //nolint:errcheck // nothing was written to it
	for unix.Unlinkat(top, "a", unix.AT_REMOVEDIR) != nil {
		mustNot(t, unix.Renameat(top, "a", top, "old"))
		old := openAt(t, top, "old")
		mustNot(t, unix.Renameat(old, "a", top, "a"))
		mustNot(t, unix.Close(old))
		mustNot(t, unix.Unlinkat(top, "old", unix.AT_REMOVEDIR))
	}
}

// exchanged is how many directories there are, so that a look at all of them takes as long as many exchanges.
const exchanged = 200

// Exchange fills a directory with directories, and exchanges them with named pipes from elsewhere, again and again until the
// test ends or stop is called, which waits for it.
func Exchange(t *testing.T, dir string) (stop func()) {
	t.Helper()
	other := t.TempDir()
	in, out := openAt(t, unix.AT_FDCWD, dir), openAt(t, unix.AT_FDCWD, other)
	for i := range exchanged {
		mustNot(t, unix.Mkdirat(in, strconv.Itoa(i), 0o755))
		mustNot(t, unix.Mkfifoat(out, strconv.Itoa(i), 0o644))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	safego.In(&work, func() {
		defer unix.Close(in)  //nolint:errcheck // nothing was written to it
		defer unix.Close(out) //nolint:errcheck // nothing was written to it
		for i := 0; ctx.Err() == nil; i = (i + 1) % exchanged {
			_ = unix.Renameat2(in, strconv.Itoa(i), out, strconv.Itoa(i), unix.RENAME_EXCHANGE)
		}
	})
	stop = func() {
		cancel()
		work.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func openAt(t *testing.T, in int, name string) int {
	t.Helper()
	fd, err := unix.Openat(in, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	mustNot(t, err)
	return fd
}

func mustNot(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
