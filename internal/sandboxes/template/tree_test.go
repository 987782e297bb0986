package template

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMountedUnder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	info := filepath.Join(t.TempDir(), "mountinfo")
	for text, want := range map[string]string{
		"22 1 0:1 / / rw - ext4 /dev/a rw\n":                                                        "",
		"22 1 0:1 / " + dir + "x rw - tmpfs t rw\n":                                                 "",
		"22 1 0:1 / " + dir + " rw - tmpfs t rw\n":                                                  dir,
		"1 1 0:1 / / rw - ext4 a rw\n23 1 0:1 / " + dir + "/tmp/a\\040b/dev rw - devtmpfs t rw\n\n": dir + "/tmp/a b/dev",
	} {
		put(t, info, text, 0o600)
		got, err := mountedUnder(info, dir)
		if err != nil || got != want {
			t.Errorf("%q: %q %v", text, got, err)
		}
	}
	if got, err := mountedUnder(info, filepath.Join(dir, "none")); err != nil || got != "" {
		t.Errorf("%q %v", got, err)
	}
	// Something that is mounted for certain.
	if got, err := mountedUnder("/proc/self/mountinfo", "/proc"); err != nil || got == "" {
		t.Errorf("%q %v", got, err)
	}
}

func TestDigestTree(t *testing.T) {
	t.Parallel()
	digest := func(change func(root string) error) string {
		t.Helper()
		root := t.TempDir()
		put(t, filepath.Join(root, "a/b"), "text", 0o644)
		put(t, filepath.Join(root, "c"), "", 0o755)
		if err := errors.Join(os.Symlink("a/b", filepath.Join(root, "l")), os.Chmod(root, 0o755), change(root)); err != nil {
			t.Fatal(err)
		}
		d, size, err := digestTree(t.Context(), root)
		if err != nil || size < 4 {
			t.Fatal(size, err)
		}
		return d
	}
	same := digest(func(string) error { return nil })
	if again := digest(func(string) error { return nil }); again != same {
		t.Error("the same tree has two digests")
	}
	for name, change := range map[string]func(root string) error{
		"content": func(r string) error { return os.WriteFile(filepath.Join(r, "a/b"), []byte("tex2"), 0o600) },
		"mode":    func(r string) error { return os.Chmod(filepath.Join(r, "c"), 0o700) },
		"name":    func(r string) error { return os.Rename(filepath.Join(r, "c"), filepath.Join(r, "d")) },
		"target": func(r string) error {
			return errors.Join(os.Remove(filepath.Join(r, "l")), os.Symlink("c", filepath.Join(r, "l")))
		},
		"more": func(r string) error { return os.WriteFile(filepath.Join(r, "z"), nil, 0o600) },
	} {
		if digest(change) == same {
			t.Errorf("%s is no part of the digest", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := t.TempDir()
	put(t, filepath.Join(root, "f"), "x", 0o644)
	if _, _, err := digestTree(ctx, root); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
