package treewalk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk/treewalktest"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, dir string) *hostpath.Path {
	t.Helper()
	p, err := hostpath.Follow(dir)
	check(t, err)
	t.Cleanup(p.Close)
	return p
}

// TestWalkVisitsAsWalkDir compares with fs.WalkDir what is visited, with each way to end early.
func TestWalkVisitsAsWalkDir(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/b/c", "a/d", "e", "z/y/x/w"} {
		check(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	check(t, os.Symlink("a", filepath.Join(dir, "link")))
	check(t, unix.Mkfifo(filepath.Join(dir, "a", "pipe"), 0o600))
	root, err := os.OpenRoot(dir)
	check(t, err)
	defer root.Close()
	for _, begin := range []string{".", "a", "a/b"} {
		for _, end := range []string{"", "a", "a/b", "a/d", "e", "link", "."} {
			for _, with := range []error{fs.SkipDir, fs.SkipAll, unix.EIO} {
				seen := func(walk func(fs.WalkDirFunc) error) (all []string, err error) {
					err = walk(func(name string, d fs.DirEntry, err error) error {
						if err != nil {
							return err
						}
						info, err := d.Info()
						all = append(all, fmt.Sprint(name, " ", d.Name(), d.IsDir(), d.Type(), info.Size(), err))
						if name == end {
							return with
						}
						return nil
					})
					return all, err
				}
				want, wantErr := seen(func(f fs.WalkDirFunc) error { return fs.WalkDir(root.FS(), begin, f) })
				got, err := seen(func(f fs.WalkDirFunc) error { return Walk(t.Context(), opened(t, dir), begin, Usual(), f) })
				byRoot, rootErr := seen(func(f fs.WalkDirFunc) error { return WalkRootAt(t.Context(), root, begin, Usual(), f) })
				if !slices.Equal(got, want) || !errors.Is(err, wantErr) || !slices.Equal(byRoot, want) || !errors.Is(rootErr, wantErr) {
					t.Errorf("from %s, %v at %q: %v %v, by a root %v %v; want %v %v", begin, with, end, got, err, byRoot, rootErr, want, wantErr)
				}
			}
		}
	}
	inner, err := os.OpenRoot(filepath.Join(dir, "a"))
	check(t, err)
	defer inner.Close()
	for _, begin := range []string{"absent", "link/b", "link", "..", "../z", "b/../../z", filepath.Join(dir, "z")} {
		visit := func(_ string, _ fs.DirEntry, err error) error { return err }
		if err := Walk(t.Context(), opened(t, dir), begin, Usual(), visit); err == nil {
			t.Errorf("%q was looked through", begin)
		}
		if err := WalkRootAt(t.Context(), inner, begin, Usual(), visit); err == nil {
			t.Errorf("%q was looked through by a root", begin)
		}
	}
}

// TestWalkBounds: each bound refuses what is larger, and takes what has just so much.
func TestWalkBounds(t *testing.T) {
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, "1/2/3"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "1/2/3/file"), nil, 0o600)) // 4 entries of 1+3+5+10 bytes, 3 directories in each other
	for _, tc := range []struct {
		b    Bounds
		want string // "": it is taken
	}{
		{Bounds{Entries: 4, Depth: 3, Names: 19}, ""},
		{Bounds{Entries: 3, Depth: 3, Names: 19}, "more than 3 entries"},
		{Bounds{Entries: 4, Depth: 2, Names: 19}, "more than 2 directories in each other in \"1\""},
		{Bounds{Entries: 4, Depth: 3, Names: 18}, "paths of more than"},
	} {
		err := Walk(t.Context(), opened(t, dir), ".", tc.b, func(_ string, _ fs.DirEntry, err error) error { return err })
		bound, is := errors.AsType[*BoundError](err)
		if is != (tc.want != "") || is && !strings.Contains(bound.Error(), tc.want) || !is && err != nil {
			t.Errorf("%+v: %v, want %q", tc.b, err, tc.want)
		}
	}
}

// TestWalkNamesWhatCanBeNamed: no path is told that is longer than the kernel takes.
func TestWalkNamesWhatCanBeNamed(t *testing.T) {
	dir := t.TempDir()
	for i, at := 0, dir; i < 15; i++ {
		at = filepath.Join(at, strings.Repeat("d", 254)) // 15 are 3,824 bytes and the root's
		check(t, os.Mkdir(at, 0o755))
	}
	walk := func() error {
		return Walk(t.Context(), opened(t, dir), ".", Usual(), func(_ string, _ fs.DirEntry, err error) error { return err })
	}
	check(t, walk()) // the control
	above := opened(t, filepath.Dir(dir))
	check(t, unix.Renameat(above.Fd(), filepath.Base(dir), above.Fd(), strings.Repeat("e", 254)))
	check(t, os.Mkdir(dir, 0o755))
	check(t, unix.Renameat(above.Fd(), strings.Repeat("e", 254), above.Fd(), filepath.Base(dir)+"/"+strings.Repeat("e", 254)))
	deepest := opened(t, dir)
	for range 16 {
		next, err := deepest.Below(one(t, deepest), hostpath.Identity{})
		check(t, err)
		defer next.Close()
		deepest = next
	}
	check(t, unix.Mkdirat(deepest.Fd(), strings.Repeat("f", 100), 0o755))
	if err := walk(); err == nil || !strings.Contains(err.Error(), "has paths of more than 4095 bytes in ") {
		t.Error(err)
	}
}

// one is the only name in a directory.
func one(t *testing.T, dir *hostpath.Path) string {
	t.Helper()
	entries, err := os.ReadDir(dir.Proc())
	check(t, err)
	if len(entries) != 1 {
		t.Fatal(entries)
	}
	return entries[0].Name()
}

// TestWalkEndsWithContext: at the next entry, wherever that is.
func TestWalkEndsWithContext(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		check(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
	}
	gone := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	seen := 0
	err := Walk(ctx, opened(t, dir), ".", Usual(), func(string, fs.DirEntry, error) error {
		seen++
		cancel(gone)
		return nil
	})
	if seen != 1 || !errors.Is(err, gone) {
		t.Errorf("%d entries were visited: %v", seen, err)
	}
}

// TestWalkHoldsParts: a tree is as large as a sandbox made it, and what is held of it is not. fs.WalkDir ends
// in no bound in the deep one, for which it takes seconds, and has memory for all names of the wide one.
func TestWalkHoldsParts(t *testing.T) {
	deep, wide := t.TempDir(), t.TempDir()
	treewalktest.Deepen(t, deep, 2_500)
	err := Walk(t.Context(), opened(t, deep), ".", Usual(), func(_ string, _ fs.DirEntry, err error) error { return err })
	if _, is := errors.AsType[*BoundError](err); !is {
		t.Errorf("2500 directories in each other: %v", err)
	}
	at := opened(t, wide)
	const names = 15_000 // of 237 bytes: all of them at once are more than may be held
	for i := range names {
		check(t, unix.Mknodat(at.Fd(), fmt.Sprintf("%07d%s", i, strings.Repeat("n", 230)), unix.S_IFREG|0o600, 0))
	}
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	seen, most := 0, uint64(0)
	check(t, Walk(t.Context(), at, ".", Usual(), func(_ string, _ fs.DirEntry, err error) error {
		if seen++; seen%5_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
		}
		return err
	}))
	if seen != names+1 || most > 2<<20 {
		t.Errorf("%d entries were visited, and %d KiB held on the way", seen, most>>10)
	}
}

// TestWalkOpensDirectoriesAlone: whatever takes a directory's name when it's to be opened is told, and keeps nobody waiting.
func TestWalkOpensDirectoriesAlone(t *testing.T) {
	for kind, want := range map[string]error{"pipe": unix.ENOTDIR, "link": unix.ENOTDIR, "file": unix.ENOTDIR, "nothing": fs.ErrNotExist, "directory": nil} {
		t.Run(kind, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			name := filepath.Join(dir, "name")
			check(t, os.Mkdir(name, 0o755))
			check(t, os.WriteFile(filepath.Join(other, "inside"), nil, 0o600))
			var told error
			visits := 0
			err := Walk(t.Context(), opened(t, dir), ".", Usual(), func(at string, _ fs.DirEntry, err error) error {
				if at == "name/inside" && kind != "directory" {
					t.Error("the walk has left the tree")
				}
				if at != "name" {
					return err
				}
				if visits++; visits == 1 {
					check(t, os.Remove(name))
					exchange(t, kind, name, other)
				}
				told = err
				return nil
			})
			if err != nil || want != nil && !errors.Is(told, want) || want == nil && told != nil {
				t.Errorf("it ended with %v, and %v was told of the name; want %v", err, told, want)
			}
		})
	}
}

func exchange(t *testing.T, kind, name, other string) {
	t.Helper()
	switch kind {
	case "pipe":
		check(t, unix.Mkfifo(name, 0o600))
	case "link":
		check(t, os.Symlink(other, name))
	case "file":
		check(t, os.WriteFile(name, nil, 0o600))
	case "directory":
		check(t, os.Mkdir(name, 0o755))
	}
}

// TestWalkRootBeginsAtNoLink: where a walk is to begin somebody put a link, which leads out of what was to be looked through.
func TestWalkRootBeginsAtNoLink(t *testing.T) {
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, "other", "below"), 0o755))
	check(t, os.Symlink("other", filepath.Join(dir, "link")))
	check(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	root, err := os.OpenRoot(dir)
	check(t, err)
	defer root.Close()
	for _, at := range []string{"link", "link/below", "pipe", "pipe/below"} {
		err := WalkRootAt(t.Context(), root, at, Usual(), func(name string, _ fs.DirEntry, err error) error {
			if err == nil {
				t.Errorf("from %s it comes to %s", at, name)
			}
			return err
		})
		if !errors.Is(err, unix.ENOTDIR) {
			t.Errorf("it begins at %s: %v", at, err)
		}
	}
}
