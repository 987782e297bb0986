package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

// TestCopyBelowAProject: "project allow" shows a person the ignore file, "which hides files of the directory
// from runs", and the settings hold below the directory, too. So a run that is started in a directory below,
// in a copy as the settings say, has nothing that this file hides, and one in a directory above neither. The control is one that is
// started at the top.
func TestCopyBelowAProject(t *testing.T) {
	own(t.Setenv, t.TempDir())
	above := t.TempDir()
	top := filepath.Join(above, "project")
	sub := filepath.Join(top, "service")
	laidFiles(t, top, 0o644, map[string]string{project.File: "workspace: copy\n", ".aiignore": ".env\n/service/key.pem\n", "service/.env": "secret", "service/key.pem": "secret", "service/main.py": ""})
	p, err := project.Read(top)
	fine(t, err)
	file, err := projectsFile()
	fine(t, err)
	fine(t, project.Allow(t.Context(), file, p))
	var shown bytes.Buffer
	fine(t, writeProject(&shown, viewProject(p, true)))
	if !strings.Contains(shown.String(), "which hides files of the directory") {
		t.Fatal(shown.String())
	}
	for dir, prefix := range map[string]string{above: "project/service", top: "service", sub: "."} {
		r := newRunner(runFlags{}, nil)
		if _, err := r.flags.withProject(newRun(), dir, []string{"true"}); err != nil {
			t.Fatal(err)
		}
		if dir == above {
			r.flags.workspace = workspaceCopy
		}
		if r.flags.workspace != workspaceCopy {
			t.Fatalf("in %s the settings do not hold", dir)
		}
		fine(t, r.copyWorkspace(t.Context(), dir))
		for name, want := range map[string]bool{".env": false, "key.pem": false, "main.py": true} {
			if _, err := os.Lstat(filepath.Join(r.workspace.Dir(), prefix, name)); (err == nil) != want {
				t.Errorf("a run that is started in %s: %s is in its copy: %v", dir, name, err == nil)
			}
		}
		if n := r.workspace.Hidden(); n != 2 {
			t.Errorf("%d paths are told to be hidden", n)
		}
	}
}
