package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/written"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestClientsOfASandboxAreNotAsked: the machine's own clients are asked for their registries
// by programs of the PATH of whoever started the daemon, in which a project's virtual environment
// comes first. None is run that lies where a sandbox could write.
func TestClientsOfASandboxAreNotAsked(t *testing.T) {
	state, host := t.TempDir(), t.TempDir()
	project, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(project, ".venv", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// The program that was written inside, in a run with --mount .:/w:rw.
	for _, name := range []string{"python3", "npm", "go"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho \"$0 $*\" >> "+filepath.Join(host, name)+"\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	paths := config.Paths{State: state, Runtime: t.TempDir()}
	p, err := hostpath.Resolve(project, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	record, err := written.Open(paths.Written())
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Add([]hostpath.Tree{{Path: p.Name, ID: p.ID}}); err != nil {
		t.Fatal(err)
	}
	// Activating an environment puts it there.
	_, err = Registries(t.Context(), config.Config{}, paths, []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + host})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"python3", "npm", "go"} {
		if text, err := os.ReadFile(filepath.Join(host, name)); err == nil {
			t.Errorf("the daemon ran what the sandbox wrote: %s", text)
		}
	}
}

// TestTheEngineIsNotASandboxes: none is found that lies where a sandbox could write, whether the configuration
// says nothing or a name alone. The control: one elsewhere.
func TestTheEngineIsNotASandboxes(t *testing.T) {
	project, elsewhere := t.TempDir(), t.TempDir()
	for _, dir := range []string{project, elsewhere} {
		if err := os.WriteFile(filepath.Join(dir, "runsc"), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", project+":"+elsewhere)
	p, err := hostpath.Resolve(project, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	trees := []hostpath.Tree{{Path: p.Name, ID: p.ID}}
	for _, configured := range []string{"", "runsc"} {
		if got := FindRunsc(configured, filepath.Join(project, "cofferdam"), trees); got != filepath.Join(elsewhere, "runsc") {
			t.Errorf("%q: %s", configured, got)
		}
		if got := FindRunsc(configured, filepath.Join(t.TempDir(), "cofferdam"), nil); got != filepath.Join(project, "runsc") {
			t.Errorf("the control: %q: %s", configured, got)
		}
	}
}

// TestOwnEnvironments: of Cofferdam's own programs the environment counts that they lie in, whoever made it. The
// control: a directory that is none.
func TestOwnEnvironments(t *testing.T) {
	for mark, want := range map[string]bool{"pyvenv.cfg": true, "conda-meta/history": true, "README": false} {
		root := t.TempDir()
		program, runsc := filepath.Join(root, "bin", "cofferdam"), filepath.Join(root, "bin", "runsc")
		for _, file := range []string{program, runsc, filepath.Join(root, mark)} {
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		if own := ownPrograms(program, runsc); slices.Contains(own, root) != want || !slices.Contains(own, runsc) {
			t.Errorf("%s: %q", mark, own)
		}
	}
}

// TestWhatWasWrittenOnceStopsOnlyItsUse: a sandbox could write in a directory that has the Docker daemon's usual
// socket. The daemon starts, since it may have no use for it. The control: a socket that the configuration names.
func TestWhatWasWrittenOnceStopsOnlyItsUse(t *testing.T) {
	paths := config.Paths{State: t.TempDir(), Runtime: t.TempDir()}
	record, err := written.Open(paths.Written())
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Add([]hostpath.Tree{{Path: "/run"}}); err != nil {
		t.Fatal(err)
	}
	if err := CheckHostPrograms(paths, config.Config{}); err != nil {
		t.Errorf("the daemon does not start: %v", err)
	}
	named := config.Config{Docker: config.Docker{Host: "unix:///run/docker.sock"}}
	if err := CheckHostPrograms(paths, named); err == nil || !strings.Contains(err.Error(), "/run/docker.sock") {
		t.Errorf("the control: %v", err)
	}
	docker := all.Engines(all.Config{StateDir: paths.State, Writable: record.Trees}, nil)["docker"]
	if _, err := docker.Capabilities(t.Context()); err == nil || !strings.Contains(err.Error(), "is reached under /run, where a sandbox may write") {
		t.Errorf("the socket is asked: %v", err)
	}
}
