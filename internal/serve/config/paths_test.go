package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPathsOfOthers: a directory that another user could have filled is refused before
// anything in it is read, whichever of the two it is, or of those whose names come from them.
func TestPathsOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can make a directory another user's")
	}
	for name, tt := range map[string]struct {
		make func(at string) error
		want string // in the refusal; "": it is taken
	}{
		"nothing yet":         {func(string) error { return nil }, ""},
		"one's own":           {func(at string) error { return os.Mkdir(at, 0o755) }, ""},
		"of one's own group":  {func(at string) error { return errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, 0o770)) }, ""},
		"a link to one's own": {func(at string) error { return errors.Join(os.Mkdir(at+"+", 0o700), os.Symlink(at+"+", at)) }, "not a directory"},
		"a link to nowhere":   {func(at string) error { return os.Symlink("nowhere", at) }, "not a directory"},
		"a file":              {func(at string) error { return os.WriteFile(at, nil, 0o600) }, "not a directory"},
		"another user's":      {func(at string) error { return errors.Join(os.Mkdir(at, 0o700), os.Chown(at, 65534, 0)) }, "another user"},
		"open to everybody":   {func(at string) error { return errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, 0o1777)) }, "chmod go-w"},
		"open to another group": {func(at string) error {
			return errors.Join(os.Mkdir(at, 0o700), os.Chown(at, 0, 65534), os.Chmod(at, 0o770))
		}, "chmod go-w"},
	} {
		for _, variable := range []string{"COFFERDAM_STATE", "COFFERDAM_RUNTIME", "COFFERDAM_STATE-workspaces", "COFFERDAM_RUNTIME-place"} {
			t.Run(name+", "+variable, func(t *testing.T) {
				dir := t.TempDir()
				t.Setenv("COFFERDAM_STATE", filepath.Join(dir, "state"))
				t.Setenv("COFFERDAM_RUNTIME", filepath.Join(dir, "run"))
				at := filepath.Join(dir, "this")
				variable, suffix, _ := strings.Cut(variable, "-")
				t.Setenv(variable, at)
				if suffix != "" {
					at += "-" + suffix
				}
				if err := tt.make(at); err != nil {
					t.Fatal(err)
				}
				_, err := DefaultPaths()
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), at)) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		}
	}
}

// TestPathsWithASlash: a slash at the end of a directory's name is no part of it. With it a link
// would pass for what it leads to, and what lies beside the directory would lie in it.
func TestPathsWithASlash(t *testing.T) {
	dir := t.TempDir()
	state, runtime := filepath.Join(dir, "state"), filepath.Join(dir, "run")
	t.Setenv("COFFERDAM_STATE", state+"/")
	t.Setenv("COFFERDAM_RUNTIME", runtime+"//.")
	p, err := DefaultPaths()
	if err != nil || p.State != state || p.Runtime != runtime || p.Workspaces() != state+"-workspaces" || p.Place() != runtime+"-place" {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, at := range []string{state, runtime} {
		if err := os.Symlink(t.TempDir(), at); err != nil {
			t.Fatal(err)
		}
		if _, err := DefaultPaths(); err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("a link at %s: %v", at, err)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
}
