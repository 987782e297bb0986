package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnotherDirectoryInItsPlace: whoever may write to the directory above can put another one, or
// a link, where the original was. Nothing is read of that, and nothing brought over to it.
func TestAnotherDirectoryInItsPlace(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(at, other string) error{
		"a link":            func(at, other string) error { return os.Symlink(other, at) },
		"another directory": func(at, other string) error { return os.Rename(other, at) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, w := project(t)
			write(t, w.Dir(), map[string]string{"a.txt": "theirs\n"})
			found, err := w.Changes(t.Context())
			if err != nil || len(found) != 1 {
				t.Fatalf("%v, %v", found, err)
			}
			other := filepath.Join(t.TempDir(), "other")
			write(t, other, map[string]string{"a.txt": "one\ntwo\nthree\n"})
			if err := os.Rename(dir, dir+".old"); err != nil {
				t.Fatal(err)
			}
			if err := put(dir, other); err != nil {
				t.Fatal(err)
			}
			const want = "is not the one that was copied"
			if _, err := w.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("changes: %v", err)
			}
			if text, err := w.Diff(found[0]); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("diff: %q, %v", text, err)
			}
			if applied, errs := w.Apply(t.Context(), found, true); len(applied) > 0 || len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
				t.Errorf("applied %v, %v", applied, errs)
			}
			if got := text(t, dir, "a.txt"); got != "one\ntwo\nthree\n" {
				t.Errorf("it was written to: %q", got)
			}
			// The control: put back, it is the one that was copied.
			if err := os.Rename(dir, dir+".other"); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir+".old", dir); err != nil {
				t.Fatal(err)
			}
			if applied, errs := w.Apply(t.Context(), found, false); len(applied) != 1 || len(errs) > 0 {
				t.Errorf("applied %v, %v", applied, errs)
			}
			if got := text(t, dir, "a.txt"); got != "theirs\n" {
				t.Errorf("it was not brought over: %q", got)
			}
		})
	}
}
