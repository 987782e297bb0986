package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/project"
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
