package guest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
)

// TestContents: a directory has the digest of its files, whatever their modes and order;
// what can't be compared has none.
func TestContents(t *testing.T) {
	files := map[string]string{"package.json": "{}", "lib/a.js": "1"}
	inner := map[string]string{"node_modules/dep/package.json": "{}"}
	digestOf := func(all ...map[string]string) string {
		f := digest.Files{}
		for _, some := range all {
			for name, text := range some {
				if err := f.Add(name, strings.NewReader(text)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return f.Digest()
	}
	for what, c := range map[string]struct {
		more       func(dir string) error
		whole, own string
	}{
		"as it is":           {nil, digestOf(files), digestOf(files)},
		"with a mode":        {func(dir string) error { return os.Chmod(dir+"/lib/a.js", 0o700) }, digestOf(files), digestOf(files)},
		"with other modules": {func(dir string) error { return put(dir, inner) }, digestOf(files, inner), digestOf(files)},
		"with links to other modules": {func(dir string) error {
			if err := os.Mkdir(dir+"/node_modules", 0o755); err != nil {
				return err
			}
			return os.Symlink("../../dep", dir+"/node_modules/dep")
		}, "", digestOf(files)},
		"with a byte more":  {func(dir string) error { return put(dir, map[string]string{"lib/a.js": "12"}) }, digestOf(map[string]string{"package.json": "{}", "lib/a.js": "12"}), digestOf(map[string]string{"package.json": "{}", "lib/a.js": "12"})},
		"with a link":       {func(dir string) error { return os.Symlink("package.json", dir+"/link.js") }, "", ""},
		"with a pipe":       {func(dir string) error { return unix.Mkfifo(dir+"/pipe.js", 0o600) }, "", ""},
		"that is not there": {os.RemoveAll, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pkg")
			if err := put(dir, files); err != nil {
				t.Fatal(err)
			}
			if c.more != nil {
				if err := c.more(dir); err != nil {
					t.Fatal(err)
				}
			}
			if whole, own := contentsOf(t.Context(), dir); whole != c.whole || own != c.own {
				t.Errorf("whole %q and own %q, want %q and %q", whole, own, c.whole, c.own)
			}
		})
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := put(dir, files); err != nil {
		t.Fatal(err)
	}
	if whole, own := contentsOf(stopped, dir); whole != "" || own != "" {
		t.Error("half of a directory has a digest")
	}
}

func put(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
