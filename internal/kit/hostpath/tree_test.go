package hostpath

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWithin: somebody who may write in a tree could have decided what a path leads to that lies there, or
// that leads through a link there, under whatever name the tree is found later; but not below what is covered. The controls are
// paths elsewhere.
func TestWithin(t *testing.T) {
	t.Parallel()
	dir, project := laid(t)
	venv := filepath.Join(project.Path, ".venv", "bin")
	must(t, errors.Join(os.MkdirAll(venv, 0o755), os.WriteFile(filepath.Join(venv, "runsc"), nil, 0o755),
		os.Symlink(filepath.Join(dir, "secret"), filepath.Join(project.Path, "out")), os.Symlink(filepath.Join(venv, "runsc"), filepath.Join(dir, "in")), os.Symlink(filepath.Join(project.Path, "later"), filepath.Join(dir, "toBe"))))
	covered := project.Cover(map[string]Mark{"bin": "", ".venv": AnyMark})
	if covered.Covered != ".venv/bin" || covered.Marks != "" {
		t.Fatalf("%q", covered.Covered)
	}
	elsewhere := project
	elsewhere.Path = filepath.Join(dir, "before") // it was moved since
	movedCovered := elsewhere
	movedCovered.Covered = ".venv"
	for name, c := range map[string]struct {
		path  string
		trees []Tree
		want  bool
	}{
		"below":                      {filepath.Join(venv, "runsc"), []Tree{project}, true},
		"itself":                     {project.Path, []Tree{project}, true},
		"not there yet":              {filepath.Join(project.Path, "later"), []Tree{project}, true},
		"by a link there":            {filepath.Join(project.Path, "out"), []Tree{project}, true},
		"by a link to nothing there": {filepath.Join(dir, "toBe", "ca.pem"), []Tree{project}, true},
		"by a link to there":         {filepath.Join(dir, "in"), []Tree{project}, true},
		"the tree was moved":         {filepath.Join(venv, "runsc"), []Tree{elsewhere}, true},
		"nobody knows":               {"/bin/sh", []Tree{{Path: "/"}}, true},
		"covered":                    {filepath.Join(venv, "runsc"), []Tree{covered}, false},
		"covered, by a link":         {filepath.Join(dir, "in"), []Tree{covered}, false},
		"covered, moved":             {filepath.Join(venv, "runsc"), []Tree{movedCovered}, false},
		"covered once, and once not": {filepath.Join(venv, "runsc"), []Tree{covered, project}, true},
		"beside what is covered":     {filepath.Join(project.Path, ".venv2"), []Tree{covered}, true},
		"a longer name":              {filepath.Join(project.Path, ".venv2", "bin"), []Tree{covered}, true},
		"the root of what covers":    {project.Path, []Tree{covered}, true},
		"control: elsewhere":         {filepath.Join(dir, "secret"), []Tree{project}, false},
		"control: no trees":          {filepath.Join(venv, "runsc"), nil, false},
	} {
		if tree, got, err := Within(c.path, c.trees); got != c.want || err != nil {
			t.Errorf("%s: %v (%v), %v", name, got, tree, err)
		}
	}
}

// TestNamesUnder: what is mounted in a directory, too, has two names there.
func TestNamesUnder(t *testing.T) {
	t.Parallel()
	table := ParseTable("1 0 8:1 / / rw\n2 1 8:1 /project/.venv /project/again rw\n3 1 8:1 /project/.venv /alias rw\n")
	for path, want := range map[string]int{"/project/.venv/bin": 2, "/alias/bin": 2, "/project/src": 1, "/elsewhere": 0} {
		if got := table.NamesUnder(path, "/project"); len(got) != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}
