package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
)

// TestTheAllowedPolicyIsUsed: what is written in the policy's place once it was found allowed
// is not what the run gets.
func TestTheAllowedPolicyIsUsed(t *testing.T) {
	own(t.Setenv, t.TempDir())
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	for path, text := range map[string]string{filepath.Join(dir, project.File): "policy: policy.yaml\n", policy: "packages: { default: deny }\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := project.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := projectsFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := project.Allow(t.Context(), file, p); err != nil {
		t.Fatal(err)
	}
	var flags runFlags
	if _, err := flags.withProject(newRun(), dir, []string{"true"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(policy, []byte("packages: { default: allow }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	req, err := flags.sandboxRequest(dir)
	if err != nil || string(req.Policy.Document) != "packages: { default: deny }\n" || req.Policy.Source != policy {
		t.Errorf("%v: %s: %s", err, req.Policy.Source, req.Policy.Document)
	}
}

// TestTheAllowedLockfilesAreUsed: what is written in a lockfile's place once it was found allowed
// is not what the run gets; one that was not there then is not read.
func TestTheAllowedLockfilesAreUsed(t *testing.T) {
	own(t.Setenv, t.TempDir())
	const pin, other = "a==1 --hash=sha256:6161616161616161616161616161616161616161616161616161616161616161\n", "b==1 --hash=sha256:6161616161616161616161616161616161616161616161616161616161616161\n"
	for _, absent := range []bool{false, true} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		files := map[string]string{project.File: "policy: policy.yaml\nlockfiles: [ own.txt ]\n", "policy.yaml": "packages: { lockfile: { files: [ pins.txt ], trust: true } }\n", "pins.txt": pin, "own.txt": pin}
		if absent {
			delete(files, "pins.txt")
		}
		for name, text := range files {
			fine(t, os.WriteFile(at(name), []byte(text), 0o600))
		}
		p, err := project.Read(dir)
		fine(t, err)
		file, err := projectsFile()
		fine(t, err)
		fine(t, project.Allow(t.Context(), file, p))
		var flags runFlags
		_, err = flags.withProject(newRun(), dir, []string{"true"})
		fine(t, err)
		fine(t, os.WriteFile(at("pins.txt"), []byte(other), 0o600))
		fine(t, os.WriteFile(at("own.txt"), []byte(other), 0o600))
		req, err := flags.sandboxRequest(dir)
		if absent {
			if err == nil || !strings.Contains(err.Error(), "was put there while the project was looked at") {
				t.Errorf("a lockfile that was not there: %v", err)
			}
			continue
		}
		fine(t, err)
		if len(req.Lockfiles) != 2 {
			t.Fatalf("it has the lockfiles %v", req.Lockfiles)
		}
		for _, l := range req.Lockfiles {
			if string(l.Document) != pin {
				t.Errorf("%s is %q", l.Source, l.Document)
			}
		}
	}
}
