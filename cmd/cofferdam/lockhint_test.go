package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestALockfileInAMountIsNamed: only of the ecosystem of what was refused, for want of a
// list, and only if none was given.
func TestALockfileInAMountIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "package-lock.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := api.Package{Ecosystem: "node", Name: "ms", Rule: "packages.default"}
	request := api.CreateSandbox{Mounts: []api.Mount{{Source: dir, Destination: "/work"}}}
	if hint := lockHint([]api.Package{refused}, request); !strings.Contains(hint, "--lockfile "+file) {
		t.Errorf("the hint is %q", hint)
	}
	other, blocked, given := refused, refused, request
	other.Ecosystem, blocked.Rule = "python", "blocked_packages.node.ms"
	given.Lockfiles = []api.Lockfile{{Source: file}}
	for _, hint := range []string{lockHint([]api.Package{other, blocked}, request), lockHint([]api.Package{refused}, given), lockHint(nil, request)} {
		if hint != "" {
			t.Errorf("the hint is %q", hint)
		}
	}
}

// TestALockHintCanBeFollowed: of two lockfiles none is told to be the client's, and of one that the run could write
// the step that a person has to take first is told.
func TestALockHintCanBeFollowed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"package-lock.json", "pnpm-lock.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := []api.Package{{Ecosystem: "node", Name: "ms", Rule: "packages.default"}}
	shown := lockHint(refused, api.CreateSandbox{Mounts: []api.Mount{{Source: dir, Destination: "/work"}}})
	for _, want := range []string{filepath.Join(dir, "package-lock.json"), filepath.Join(dir, "pnpm-lock.yaml"), "the one that the client reads"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in %q", want, shown)
		}
	}
	if strings.Contains(shown, "project allow") {
		t.Errorf("a file that no run could write: %q", shown)
	}
	written := lockHint(refused, api.CreateSandbox{Mounts: []api.Mount{{Source: dir, Destination: "/work", ReadWrite: true}}})
	if !strings.HasSuffix(written, "cofferdam project allow FILE") {
		t.Errorf("two files that the run could write: %q", written)
	}
	if err := os.Remove(filepath.Join(dir, "pnpm-lock.yaml")); err != nil {
		t.Fatal(err)
	}
	written = lockHint(refused, api.CreateSandbox{Mounts: []api.Mount{{Source: dir, Destination: "/work", ReadWrite: true}}})
	if !strings.HasSuffix(written, "cofferdam project allow "+filepath.Join(dir, "package-lock.json")) {
		t.Errorf("a file that the run could write: %q", written)
	}
}
