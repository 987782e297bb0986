package mountpolicy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// TestOwnProgramsAreCovered: where a mount that can be written has Cofferdam's own programs below it, what
// has them directly in the mount is shown read-only. The controls: a mount that has none, and one that can't be written.
func TestOwnProgramsAreCovered(t *testing.T) {
	project, other := t.TempDir(), t.TempDir()
	bin := filepath.Join(project, ".venv", "bin")
	for _, dir := range []string{bin, filepath.Join(project, "src"), filepath.Join(project, ".venv", "lib")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(bin, "cofferdam"), filepath.Join(bin, "runsc")} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(bin, "runsc"), filepath.Join(other, "runsc")); err != nil {
		t.Fatal(err)
	}
	own := []string{filepath.Join(bin, "cofferdam"), filepath.Join(bin, "runsc")}
	venv := append(slices.Clone(own), filepath.Join(project, ".venv"))
	for name, c := range map[string]struct {
		own     []string
		mount   Mount
		covered []string // destinations
		refused bool
	}{
		"a project":                      {own, Mount{Source: project, Destination: "/w", ReadWrite: true}, []string{"/w/.venv"}, false},
		"one with an environment":        {venv, Mount{Source: project, Destination: "/w", ReadWrite: true}, []string{"/w/.venv"}, false},
		"the directory of programs":      {own, Mount{Source: bin, Destination: "/w", ReadWrite: true}, []string{"/w/cofferdam", "/w/runsc"}, false},
		"a part of the environment":      {venv, Mount{Source: filepath.Join(project, ".venv", "lib"), Destination: "/w", ReadWrite: true}, nil, true},
		"the environment":                {venv, Mount{Source: filepath.Join(project, ".venv"), Destination: "/w", ReadWrite: true}, nil, true},
		"a program itself":               {own, Mount{Source: own[0], Destination: "/w", ReadWrite: true}, nil, true},
		"a link to it":                   {[]string{filepath.Join(other, "runsc")}, Mount{Source: other, Destination: "/w", ReadWrite: true}, nil, true},
		"what a link leads to":           {[]string{filepath.Join(other, "runsc")}, Mount{Source: project, Destination: "/w", ReadWrite: true}, []string{"/w/.venv"}, false},
		"control: another part":          {venv, Mount{Source: filepath.Join(project, "src"), Destination: "/w", ReadWrite: true}, nil, false},
		"control: only read":             {venv, Mount{Source: project, Destination: "/w"}, nil, false},
		"control: a program is gone":     {[]string{filepath.Join(project, "none")}, Mount{Source: project, Destination: "/w", ReadWrite: true}, nil, false},
		"control: the environment, read": {venv, Mount{Source: filepath.Join(project, ".venv"), Destination: "/w"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			laid, err := Rules{OwnPrograms: c.own}.Lay(t.Context(), []Mount{c.mount}, nil)
			if (err != nil) != c.refused {
				t.Fatalf("refused: %v", err)
			}
			if err != nil {
				return
			}
			var covered []string
			for _, m := range laid[1:] {
				if !m.ReadOnly || m.Origin.Type == "" || !m.Covers.Is(hostpath.MarkAt(m.Source)) {
					t.Errorf("%+v is no cover", m)
				}
				covered = append(covered, m.Destination)
			}
			if !slices.Equal(covered, c.covered) {
				t.Errorf("%q are covered, not %q", covered, c.covered)
			}
		})
	}
}

// TestSystemProgramsAreNotWritten: what the host itself runs lies in no mount that can be written. The
// controls: to read there, and to write beside.
func TestSystemProgramsAreNotWritten(t *testing.T) {
	for dir, refused := range map[string]bool{"/usr": true, "/usr/bin": true, "/etc": true, "/usr/local": true, "/usr/local/bin": true, "/usr/share/doc": true, "/boot": true, "/opt": false, "/usr/src": false, t.TempDir(): false} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		for _, rw := range []bool{true, false} {
			laid, err := Rules{}.Lay(t.Context(), []Mount{{Source: dir, Destination: "/w", ReadWrite: rw}}, nil)
			if (err != nil) != (refused && rw) {
				t.Errorf("%s, read-write %v: %+v, %v", dir, rw, laid, err)
			}
		}
	}
}

// TestAnotherPathThatWasAskedForIsSeen: where a cover would lie, and another path of the host was asked for, that is
// what the agent has there. It is known what it lies over. The control: elsewhere the cover is there.
func TestAnotherPathThatWasAskedForIsSeen(t *testing.T) {
	project, other := t.TempDir(), t.TempDir()
	venv := filepath.Join(project, ".venv")
	program, rules := filepath.Join(venv, "cofferdam"), filepath.Join(project, "policy.yaml")
	if err := os.Mkdir(venv, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{program, rules, filepath.Join(other, "policy.yaml")} {
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ source, place, over string }{
		"a directory": {other, "/w/.venv", venv}, "a file": {filepath.Join(other, "policy.yaml"), "/w/policy.yaml", rules},
		"control: elsewhere": {other, "/elsewhere", ""},
	} {
		for _, rw := range []bool{true, false} {
			asked := []Mount{{Source: project, Destination: "/w", ReadWrite: true}, {Source: c.source, Destination: c.place, ReadWrite: rw}}
			laid, err := Rules{OwnPrograms: []string{program}}.Lay(t.Context(), asked, []string{rules})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var at []string
			for _, m := range laid {
				if m.Destination != c.place {
					continue
				}
				if at = append(at, m.Source); (c.over != "") != m.Covers.Is(hostpath.MarkAt(c.over)) {
					t.Errorf("%s: it lies over %q", name, m.Covers)
				}
			}
			if want := map[bool]int{true: 3, false: 4}[c.over != ""]; !slices.Equal(at, []string{c.source}) || len(laid) != want {
				t.Errorf("%s: there is %q, of %+v", name, at, laid)
			}
		}
	}
}
