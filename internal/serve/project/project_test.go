package project_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

const whole = `
template: dev
policy: policy.yaml
isolation: gvisor
workspace: copy
agent: claude
home: desk
task: repair the build
timeout: 30m
lockfiles: [ uv.lock ]
mounts: [ "data:/data" ]
ports: [ 8000, "8080:80" ]
environment: { MODE: test }
hooks: { start: [ npm ci ], end: [ npm test ] }
command: [ npx, claude ]
`

// TestParse: every key has its place.
func TestParse(t *testing.T) {
	t.Parallel()
	got, err := project.Parse("cofferdam.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := project.Settings{
		Template: "dev", Policy: "policy.yaml", Isolation: "gvisor", Workspace: "copy", Agent: "claude", Home: "desk", Task: "repair the build",
		Timeout: config.Duration(30 * time.Minute), Lockfiles: []string{"uv.lock"}, Mounts: []string{"data:/data"}, Ports: []string{"8000", "8080:80"},
		Environment: map[string]string{"MODE": "test"}, Hooks: project.Hooks{Start: []string{"npm ci"}, End: []string{"npm test"}}, Command: []string{"npx", "claude"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	for i := range reflect.ValueOf(got).NumField() {
		if reflect.ValueOf(got).Field(i).IsZero() {
			t.Errorf("the test says nothing of %s", reflect.TypeOf(got).Field(i).Name)
		}
	}
}

// TestBadSettings: one sentence, with the line where there is one.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"template: debian\ntemplat: dev\n":    `cofferdam.yaml is wrong: line 2, column 1: there is no key "templat"`,
		"template: a\ntemplate: b\n":          `line 2`,
		"timeout: soon\n":                     `line 1, column 10: "soon" is not a duration such as 90s or 5m`,
		"mounts: here\n":                      `line 1`,
		"workspace: move\n":                   `cofferdam.yaml: workspace is "move"; it can be copy, or be left out`,
		"environment: { A=B: c }\n":           `environment: "A=B" is no variable`,
		"hooks: { start: [ ' ' ] }\n":         `hooks: a line is empty`,
		"template: debian\n---\npolicy: p\n":  `has more than one document`,
		"a: &a [x,x]\nb: &b [*a,*a]\nc: *b\n": `there is no key "a"`,
	} {
		if _, err := project.Parse("cofferdam.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFind looks upwards, and not out of a repository.
func TestFind(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	write(t, filepath.Join(top, "cofferdam.yaml"), "template: debian\n")
	write(t, filepath.Join(top, "repo", ".git", "config"), "")
	write(t, filepath.Join(top, "plain", "deep", "x"), "")
	for dir, found := range map[string]bool{".": true, "plain/deep": true, "repo": false} {
		p, err := project.Find(filepath.Join(top, dir), "")
		if err != nil || (p != nil) != found {
			t.Errorf("%s: %v %v", dir, p, err)
		}
		if p != nil && p.Path() != filepath.Join(top, "cofferdam.yaml") {
			t.Error(p.Path())
		}
	}
}

// TestNoFile: what is no file is not read, and nobody waits for who might write it.
func TestNoFile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cofferdam.yaml", "p.yaml"} {
		top := t.TempDir()
		write(t, filepath.Join(top, "cofferdam.yaml"), "policy: p.yaml\n")
		if err := os.RemoveAll(filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(filepath.Join(top, name), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := project.Find(top, ""); err == nil || !strings.Contains(err.Error(), "it is no regular file") {
			t.Errorf("%s: %v %v", name, p, err)
		}
	}
}

// TestAllowed: what was read is allowed, and no other content of the file or of its policy,
// nor the same at another place.
func TestAllowed(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	kept := filepath.Join(t.TempDir(), "state", "projects.json")
	write(t, filepath.Join(top, "cofferdam.yaml"), "policy: p.yaml\n")
	write(t, filepath.Join(top, "p.yaml"), "packages: { default: deny }\n")
	is := func(dir string) bool {
		t.Helper()
		p, err := project.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := project.Allowed(kept, p)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	allow := func() {
		t.Helper()
		p, err := project.Read(top)
		if err != nil {
			t.Fatal(err)
		}
		if err := project.Allow(t.Context(), kept, p); err != nil {
			t.Fatal(err)
		}
	}
	if is(top) {
		t.Error("a new one is allowed")
	}
	if allow(); !is(top) {
		t.Error("it is not allowed")
	}
	write(t, filepath.Join(top, "p.yaml"), "packages: { default: allow }\n")
	if is(top) {
		t.Error("another policy is allowed")
	}
	allow()
	write(t, filepath.Join(top, "cofferdam.yaml"), "policy: p.yaml\nagent: claude\n")
	if is(top) {
		t.Error("other settings are allowed")
	}
	allow()
	other := t.TempDir()
	write(t, filepath.Join(other, "cofferdam.yaml"), "policy: p.yaml\nagent: claude\n")
	write(t, filepath.Join(other, "p.yaml"), "packages: { default: allow }\n")
	if is(other) {
		t.Error("the same elsewhere is allowed")
	}
	if err := project.Forbid(t.Context(), kept, top); err != nil || is(top) {
		t.Error("it is still allowed", err)
	}
	// Borders between the two can't be moved.
	write(t, filepath.Join(top, "cofferdam.yaml"), "policy: p.yaml\n#")
	write(t, filepath.Join(top, "p.yaml"), "x")
	allow()
	write(t, filepath.Join(top, "cofferdam.yaml"), "policy: p.yaml\n")
	write(t, filepath.Join(top, "p.yaml"), "#x")
	if is(top) {
		t.Error("bytes that moved from one file to the other are allowed")
	}
}

// TestUnreadable: what can't be read is no project without settings.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	write(t, filepath.Join(top, "cofferdam.yaml"), "policy: gone.yaml\n")
	if _, err := project.Find(top, ""); err == nil || !strings.Contains(err.Error(), "names the policy gone.yaml, which can't be read") {
		t.Error(err)
	}
	write(t, filepath.Join(top, "cofferdam.yaml"), "# "+strings.Repeat("x", 1<<20))
	if _, err := project.Find(top, ""); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(top, "cofferdam.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(top, "cofferdam.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := project.Find(top, ""); err == nil {
		t.Error("a directory was read")
	}
}

// TestAllowedSettingsAreNotHidden: what an agent that may write to a directory can do there has no run
// be made without the settings that somebody has allowed.
func TestAllowedSettingsAreNotHidden(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do   func(top string) error
		want string // of the refusal; "": the settings are found
	}{
		"nothing":               {func(string) error { return nil }, ""},
		"a repository":          {func(top string) error { return os.Mkdir(filepath.Join(top, "sub", ".git"), 0o755) }, ""},
		"a file that seems one": {func(top string) error { return os.WriteFile(filepath.Join(top, "sub", "deep", ".git"), nil, 0o600) }, ""},
		"a link that seems one": {func(top string) error { return os.Symlink("nowhere", filepath.Join(top, "sub", "deep", ".git")) }, ""},
		"they are gone":         {func(top string) error { return os.Remove(filepath.Join(top, project.File)) }, "is not there any more"},
		"gone, in a repository": {func(top string) error {
			return errors.Join(os.Remove(filepath.Join(top, project.File)), os.Mkdir(filepath.Join(top, "sub", ".git"), 0o755))
		}, "is not there any more"},
		"a directory": {func(top string) error {
			return errors.Join(os.Remove(filepath.Join(top, project.File)), os.Mkdir(filepath.Join(top, project.File), 0o755))
		}, "it is no regular file"},
		"a link that leads nowhere": {func(top string) error {
			return errors.Join(os.Remove(filepath.Join(top, project.File)), os.Symlink("nowhere", filepath.Join(top, project.File)))
		}, "is not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top, kept := t.TempDir(), filepath.Join(t.TempDir(), "projects.json")
			write(t, filepath.Join(top, project.File), "template: debian\n")
			deep := filepath.Join(top, "sub", "deep")
			if err := os.MkdirAll(deep, 0o755); err != nil {
				t.Fatal(err)
			}
			p, err := project.Find(deep, kept)
			if err != nil || p == nil || p.Dir != top {
				t.Fatal(p, err)
			}
			if err := project.Allow(t.Context(), kept, p); err != nil {
				t.Fatal(err)
			}
			if err := test.do(top); err != nil {
				t.Fatal(err)
			}
			p, err = project.Find(deep, kept)
			if test.want == "" && (err != nil || p == nil || p.Dir != top) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, %v", p, err)
			}
			if err := project.Forbid(t.Context(), kept, top); err != nil {
				t.Fatal(err)
			}
			if p, err := project.Find(deep, kept); strings.Contains(test.want, "any more") && (p != nil || err != nil) { // the control
				t.Errorf("taken back: %v, %v", p, err)
			}
		})
	}
}

// TestChangedParts: whoever is asked again is told what has changed; a list that an older version
// wrote has digests alone.
func TestChangedParts(t *testing.T) {
	t.Parallel()
	top, kept := t.TempDir(), filepath.Join(t.TempDir(), "projects.json")
	write(t, filepath.Join(top, project.File), "policy: p.yaml\n")
	write(t, filepath.Join(top, "p.yaml"), "packages: { default: deny }\n")
	read := func() *project.Project {
		t.Helper()
		p, err := project.Read(top)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := project.Allow(t.Context(), kept, read()); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(top, project.IgnoreFile), "key.pem\n")
	write(t, filepath.Join(top, "p.yaml"), "packages: { default: allow }\n")
	parts, known, err := project.Changed(kept, read())
	if ok, _ := project.Allowed(kept, read()); ok || err != nil || !known || !slices.Equal(parts, []string{project.IgnoreFile, "the policy"}) {
		t.Errorf("%v, %v, %v, allowed: %v", parts, known, err, ok)
	}
	write(t, kept, `{"`+top+`": "`+read().Digest+`"}`)
	if ok, err := project.Allowed(kept, read()); !ok || err != nil {
		t.Errorf("by an older version: %v, %v", ok, err)
	}
	write(t, filepath.Join(top, "p.yaml"), "packages: { default: hold }\n")
	if parts, known, err := project.Changed(kept, read()); len(parts) > 0 || !known || err != nil {
		t.Errorf("by an older version: %v, %v, %v", parts, known, err)
	}
}

// TestAPlaceThatBecameALink: who goes to a directory by its name comes to another's place.
func TestAPlaceThatBecameALink(t *testing.T) {
	t.Parallel()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "projects.json")
	write(t, filepath.Join(top, "work", project.File), "")
	write(t, filepath.Join(top, "other", "x"), "")
	p, err := project.Read(filepath.Join(top, "work"))
	if err != nil {
		t.Fatal(err)
	}
	if err := project.Allow(t.Context(), kept, p); err != nil {
		t.Fatal(err)
	}
	if err := project.CheckPlace(filepath.Join(top, "work", "deep"), kept); err != nil { // the control
		t.Error(err)
	}
	if err := errors.Join(os.Rename(p.Dir, p.Dir+".old"), os.Symlink("other", p.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := project.CheckPlace(filepath.Join(top, "work", "deep"), kept); err == nil || !strings.Contains(err.Error(), "is reached through the link") {
		t.Error(err)
	}
}
