package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

// TestPartsOutsideAreToldBeforeTheStart: by a run with a mount or a copy, by project show, and never by more lines than a person reads.
func TestPartsOutsideAreToldBeforeTheStart(t *testing.T) {
	own(t.Setenv, t.TempDir())
	dir := resolved(t.TempDir())
	at := func(name string) string { return filepath.Join(dir, name) }
	var deps []string
	for name := range strings.SplitSeq("abcdefghijkl", "") {
		fine(t, errors.Join(os.MkdirAll(at("x"+name), 0o755), os.WriteFile(at("x"+name+"/package.json"), []byte("{}"), 0o600)))
		deps = append(deps, `"x`+name+`":"file:../x`+name+`"`)
	}
	fine(t, os.Mkdir(at("p"), 0o755))
	fine(t, os.WriteFile(at("p/package.json"), []byte(`{"dependencies":{`+strings.Join(deps, ",")+`}}`), 0o600))
	fine(t, os.WriteFile(at("p/"+project.File), []byte("workspace: copy\n"), 0o600))
	p, err := project.Read(at("p"))
	fine(t, err)
	for name, lines := range map[string][]string{
		"a mount":  outsideLines(runFlags{}.listShownPaths(at("p"), []api.Mount{{Source: at("p"), Destination: "/workspace"}})),
		"a copy":   outsideLines(runFlags{workspace: workspaceCopy}.listShownPaths(at("p"), nil)),
		"settings": viewProject(p, false).Outside,
	} {
		want := "package.json leads to " + at("xa") + ", outside of /workspace: look whether it is this project's; it is not there without --mount " + at("xa") + ":/xa"
		if len(lines) != mostOutside+1 || lines[0] != want || lines[mostOutside] != "so do 4 more" {
			t.Errorf("%s: %q", name, lines)
		}
	}
	if lines := outsideLines(runFlags{}.listShownPaths(at("p"), nil)); len(lines) > 0 {
		t.Errorf("nothing is shown: %q", lines)
	}
}

// TestAPipeHoldsUpNoRun: whatever a project has in the place of what is read of it, nobody waits for it.
func TestAPipeHoldsUpNoRun(t *testing.T) {
	dir := resolved(t.TempDir())
	for _, name := range []string{".git", "package.json", "pnpm-workspace.yaml", "go.mod", "go.work", "pyproject.toml", "requirements.txt", "setup.cfg"} {
		fine(t, unix.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	if lines := outsideLines(runFlags{}.listShownPaths(dir, []api.Mount{{Source: dir, Destination: "/workspace"}})); len(lines) > 0 {
		t.Errorf("%q", lines)
	}
}
