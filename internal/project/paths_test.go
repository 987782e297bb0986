package project

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWhereAllowedPathsLead: what was allowed is where the paths led. A link that is put in
// a path's place afterwards, as an agent can, is not allowed; nor is one in the place of what
// was not there.
func TestWhereAllowedPathsLead(t *testing.T) {
	for name, swap := range map[string]func(dir, secret string) error{
		"a directory": func(dir, secret string) error {
			return swapped(filepath.Join(dir, "data"), secret)
		},
		"a name with a colon":    func(dir, secret string) error { return swapped(filepath.Join(dir, "docs:api"), secret) },
		"a directory on the way": func(dir, secret string) error { return swapped(filepath.Join(dir, "deep"), secret) },
		"a lockfile":             func(dir, secret string) error { return swapped(filepath.Join(dir, "uv.lock"), secret) },
		"what was not there":     func(dir, secret string) error { return os.Symlink(secret, filepath.Join(dir, "later")) },
		"another link": func(dir, secret string) error {
			return swapped(filepath.Join(dir, "linked"), secret)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			check(t, err)
			secret, file := filepath.Join(dir, "secret"), filepath.Join(t.TempDir(), "projects.json")
			dir = filepath.Join(dir, "project")
			for _, d := range []string{filepath.Join(dir, "data"), filepath.Join(dir, "docs:api"), filepath.Join(dir, "deep", "down"), filepath.Join(secret, "down")} {
				check(t, os.MkdirAll(d, 0o755))
			}
			check(t, os.WriteFile(filepath.Join(dir, "uv.lock"), nil, 0o600))
			check(t, os.Symlink("data", filepath.Join(dir, "linked")))
			check(t, os.WriteFile(filepath.Join(dir, File), []byte(`lockfiles: [uv.lock]
mounts: [".:/workspace:rw", "data:/data", "docs:api:/docs:rw", "deep/down:/down", "linked:/linked", "later:/later"]
`), 0o600))
			p, err := Read(dir)
			check(t, err)
			if want := []Lead{{Path: "linked", To: filepath.Join(dir, "data")}}; !slices.Equal(p.Leads, want) {
				t.Errorf("it leads to %v, want %v", p.Leads, want)
			}
			check(t, Allow(t.Context(), file, p))
			again, err := Read(dir)
			check(t, err)
			if ok, err := Allowed(file, again); !ok || err != nil { // the control
				t.Fatalf("unchanged, it is not allowed: %v", err)
			}
			check(t, swap(dir, secret))
			again, err = Read(dir)
			check(t, err)
			if ok, err := Allowed(file, again); ok || err != nil {
				t.Errorf("it is allowed: %v, though it leads to %v", err, again.Leads)
			}
		})
	}
}

func swapped(at, to string) error {
	if err := os.Rename(at, at+".old"); err != nil {
		return err
	}
	return os.Symlink(to, at)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
