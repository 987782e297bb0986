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

// TestAllowedLockfiles: what was allowed is the lockfiles, too, that the settings and their policy
// name, be they trusted or not. Another content, or a file where none was, is not allowed.
func TestAllowedLockfiles(t *testing.T) {
	const pin = "a==1 --hash=sha256:6161616161616161616161616161616161616161616161616161616161616161\n"
	for name, change := range map[string]func(dir string) error{
		"the policy's": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "conf", "pins.txt"), []byte("#"+pin), 0o600)
		},
		"the settings'":          func(dir string) error { return os.WriteFile(filepath.Join(dir, "more.txt"), []byte(pin+"#"), 0o600) },
		"emptied":                func(dir string) error { return os.Truncate(filepath.Join(dir, "more.txt"), 0) },
		"gone":                   func(dir string) error { return os.Remove(filepath.Join(dir, "more.txt")) },
		"one that was not there": func(dir string) error { return os.WriteFile(filepath.Join(dir, "later.txt"), nil, 0o600) },
		"a link to the same text": func(dir string) error {
			return swapped(filepath.Join(dir, "more.txt"), filepath.Join(dir, "same.txt"))
		},
	} {
		for _, trust := range []string{"true", "false"} {
			t.Run(name+", trust "+trust, func(t *testing.T) {
				dir, err := filepath.EvalSymlinks(t.TempDir())
				check(t, err)
				file := filepath.Join(t.TempDir(), "projects.json")
				check(t, os.Mkdir(filepath.Join(dir, "conf"), 0o755))
				for at, text := range map[string]string{
					File: "policy: conf/policy.yaml\nlockfiles: [ more.txt, later.txt, conf/pins.txt ]\n", "conf/policy.yaml": "packages: { lockfile: { files: [ pins.txt ], trust: " + trust + " } }\n",
					"conf/pins.txt": pin, "more.txt": pin, "same.txt": pin, "other.txt": pin,
				} {
					check(t, os.WriteFile(filepath.Join(dir, at), []byte(text), 0o600))
				}
				p, err := Read(dir)
				check(t, err)
				check(t, Allow(t.Context(), file, p))
				check(t, os.WriteFile(filepath.Join(dir, "other.txt"), []byte("x"), 0o600)) // nobody names it
				again, err := Read(dir)
				check(t, err)
				if ok, err := Allowed(file, again); !ok || err != nil { // the control
					t.Fatalf("unchanged, it is not allowed: %v", err)
				}
				if len(again.Locks) != 3 || again.Locks[0].Trusted != (trust == "true") {
					t.Errorf("its lockfiles are %v", again.Locks)
				}
				check(t, change(dir))
				again, err = Read(dir)
				check(t, err)
				if ok, err := Allowed(file, again); ok || err != nil {
					t.Errorf("it is allowed: %v, with the lockfiles %v", err, again.Locks)
				}
			})
		}
	}
}

// TestDeciding: what the settings of a directory and of those above it name, with what they lead
// through; and what wrong ones name is used by nobody.
func TestDeciding(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	at := func(names ...string) (all []string) {
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		return all
	}
	check(t, os.MkdirAll(filepath.Join(dir, "sub", "wrong"), 0o755))
	check(t, os.MkdirAll(filepath.Join(dir, "real"), 0o755))
	check(t, os.Symlink("real/p.yaml", filepath.Join(dir, "policy.yaml")))
	for name, text := range map[string]string{
		File: "policy: policy.yaml\nlockfiles: [ uv.lock ]\n", "real/p.yaml": "packages: { lockfile: { files: [ go.sum ] } }\n",
		"sub/" + File: "policy: absent.yaml\n", "sub/wrong/" + File: "polcy: x\n",
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	top := at(File, "policy.yaml", "policy.yaml", "real/p.yaml", "go.sum", "uv.lock")
	for name, want := range map[string][]string{".": top, "real": top, "sub": slices.Concat(at("sub/"+File, "sub/absent.yaml"), top), "sub/wrong": slices.Concat(at("sub/"+File, "sub/absent.yaml"), top)} {
		got := Deciding(filepath.Join(dir, name))
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
