package image

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// made is an image of the sandbox "box" with two files.
func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "frozen", "box")
	if err := Make(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"memory", "state"} {
		write(t, filepath.Join(dir, name), name)
	}
	if err := Seal(dir, "box"); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSealed(t *testing.T) {
	dir := made(t)
	if err := Verify(dir, "box"); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if n, err := Size(dir); err != nil || n < 100 || !Whole(dir) {
		t.Errorf("size %d, %v, whole %t", n, err, Whole(dir))
	}
	if err := Make(dir); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a second image in the same place: %v", err)
	}
	if err := Make("frozen/box"); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a relative place: %v", err)
	}
	if err := Seal(t.TempDir(), "box"); err == nil {
		t.Error("an image without files was sealed")
	}
}

func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"a byte":        func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "memory"), "nemory") },
		"a length":      func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "memory"), "memory ") },
		"a file more":   func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "more"), "") },
		"a file less":   func(t *testing.T, dir string) { t.Helper(); remove(t, dir, "state") },
		"no seal":       func(t *testing.T, dir string) { t.Helper(); remove(t, dir, sealName) },
		"half a seal":   func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, sealName), `{"sandbox":"bo`) },
		"another's":     func(t *testing.T, dir string) { t.Helper(); _ = Seal(dir, "other") },
		"a link":        func(t *testing.T, dir string) { t.Helper(); link(t, dir) },
		"not there":     func(t *testing.T, dir string) { t.Helper(); _ = os.RemoveAll(dir) },
		"a seal of air": func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, sealName), "{}") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := made(t)
			damage(t, dir)
			if err := Verify(dir, "box"); !errors.Is(err, fault.ErrConflict) {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, dir string) {
	t.Helper()
	remove(t, dir, "state")
	if err := os.Symlink("memory", filepath.Join(dir, "state")); err != nil {
		t.Fatal(err)
	}
}
