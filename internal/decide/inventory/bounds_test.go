package inventory

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// chain makes directories one in another, step by step, so that their path may be longer than
// the kernel takes, and in the last one a package.
func chain(t *testing.T, root, name string, depth int) (place string) {
	t.Helper()
	at, err := unix.Open(root, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	into := func(name string) {
		t.Helper()
		if err := unix.Mkdirat(at, name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = next
	}
	for range depth {
		into(name)
	}
	into("node_modules")
	into("x")
	file, err := unix.Openat(at, "package.json", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = unix.Close(file), unix.Close(at)
	return strings.Repeat("/"+name, depth) + "/node_modules/x"
}

// TestDepthIsNoBound: a package is found however deep it lies, and below a path that no program
// can name.
func TestDepthIsNoBound(t *testing.T) {
	for name, c := range map[string]struct {
		name  string
		depth int
	}{
		"48 deep":                      {"d", 48},
		"deeper than a path is long":   {"d", 3000},
		"names as long as they can be": {strings.Repeat("n", 255), 40},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			place := chain(t, root, c.name, c.depth)
			m := later()
			for range 2 { // the second time it is remembered, if it is
				found := takeInventory(t.Context(), Request{Root: root, Places: []string{"/"}, Layouts: m.layouts, Memory: m}, usualBounds())
				if len(found.Packages) != 1 || !strings.HasPrefix(place, found.Packages[0].Path) {
					t.Fatalf("%d packages: %.200v", len(found.Packages), found.Packages)
				}
				cut := len(place) > channel.MaxInventoryPlace
				if want := []channel.InventoryBound{channel.BoundName}; cut && !slices.Equal(found.Bounds, want) || !cut && len(found.Bounds) > 0 {
					t.Errorf("a path of %d bytes meets %v", len(place), found.Bounds)
				}
			}
		})
	}
}

// TestEachBoundHasItsName: of an inventory that meets one bound that one is told, and no other;
// one less of everything meets none.
func TestEachBoundHasItsName(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	tree := func(most bounds, ctx context.Context) []channel.InventoryBound {
		root := t.TempDir()
		for i := range 4 {
			write(t, filepath.Join(root, fmt.Sprintf("a/b%d/node_modules/x/package.json", i)), "{}")
		}
		m := later()
		return takeInventory(ctx, Request{Root: root, Places: []string{"/"}, Layouts: m.layouts, Memory: m}, most).Bounds
	}
	const all = 10 // directories that are looked into: the root, a, four b and four node_modules
	less := func(change func(*bounds)) bounds {
		most := usualBounds()
		change(&most)
		return most
	}
	told := map[string]channel.InventoryBound{}
	for want, c := range map[channel.InventoryBound]struct {
		met, fits bounds
		late      bool
	}{
		channel.BoundDirectories: {less(func(b *bounds) { b.directories = all - 1 }), less(func(b *bounds) { b.directories = all }), false},
		channel.BoundPackages:    {less(func(b *bounds) { b.packages = 3 }), less(func(b *bounds) { b.packages = 5 }), false},
		channel.BoundBytes:       {less(func(b *bounds) { b.bytes = 200 }), less(func(b *bounds) { b.bytes = 2000 }), false},
		channel.BoundPath:        {less(func(b *bounds) { b.path = len("/a/b0/node_modules") - 1 }), less(func(b *bounds) { b.path = len("/a/b0/node_modules") }), false},
		channel.BoundTime:        {usualBounds(), usualBounds(), true},
	} {
		ctx := t.Context()
		if c.late {
			ctx = over
		}
		if got := tree(c.met, ctx); !slices.Equal(got, []channel.InventoryBound{want}) {
			t.Errorf("met is %v, not %s", got, want)
		}
		if got := tree(c.fits, t.Context()); len(got) > 0 {
			t.Errorf("%s: one that fits meets %v", want, got)
		}
		told[want.String()] = want
	}
	for _, bound := range []channel.InventoryBound{channel.BoundName, channel.BoundUnread, "of a later release"} {
		told[bound.String()] = bound
	}
	if len(told) != 8 {
		t.Errorf("two bounds are told alike: %v", told)
	}
}

// TestWhatCanNotBeReadIsTold: a directory that is not there, or that nobody may read, has nothing in
// it; one whose disk or whose memory fails may.
func TestWhatCanNotBeReadIsTold(t *testing.T) {
	for err, nothing := range map[unix.Errno]bool{
		unix.ENOENT: true, unix.ENOTDIR: true, unix.ELOOP: true, unix.EACCES: true, unix.EPERM: true,
		unix.EIO: false, unix.EMFILE: false, unix.ENOMEM: false, unix.ENAMETOOLONG: false, unix.ESTALE: false,
	} {
		if isNothing(fmt.Errorf("open: %w", err)) != nothing {
			t.Errorf("%v", err)
		}
	}
}

// TestLongPathsAreNotKept: what is remembered of a directory that was visited is as large however long
// its path is.
func TestLongPathsAreNotKept(t *testing.T) {
	w := &Walk{ctx: t.Context(), most: usualBounds(), memory: later(), seen: map[pathSum]bool{}}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	root := t.TempDir() + strings.Repeat("/not-there", 1500)
	for i := range 2000 {
		w.Visit(fmt.Sprint(root, i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); len(w.seen) != 2000 || kept > 8<<20 {
		t.Errorf("%d directories with paths of 15 KiB keep %d bytes", len(w.seen), kept)
	}
}
