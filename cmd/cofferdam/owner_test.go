package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingOfAnotherUserIsBelieved: as root, with the state directory of another user whose
// configuration names a program, no command reads that, writes there, or runs the program.
func TestNothingOfAnotherUserIsBelieved(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("only root can make a directory another user's")
	}
	dir := t.TempDir()
	program, marker := filepath.Join(dir, "runsc"), filepath.Join(dir, "was-run")
	state := filepath.Join(dir, "state")
	err := errors.Join(os.WriteFile(program, []byte("#!/bin/sh\necho run >"+marker+"\n"), 0o755), os.Mkdir(state, 0o755),
		os.WriteFile(filepath.Join(state, "config.yaml"), []byte("runsc: "+program+"\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	say := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "cofferdam", args...)
		cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+state, "COFFERDAM_RUNTIME="+filepath.Join(dir, "run"))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	// The control: of one's own directory, the program is run.
	if out, _ := say("doctor"); !isThere(t, marker) {
		t.Fatalf("doctor does not run what the configuration names, so that the rest proves nothing:\n%s", out)
	}
	if err := errors.Join(os.Remove(marker), filepath.Walk(state, func(at string, _ os.FileInfo, err error) error {
		return errors.Join(err, os.Lchown(at, 65534, 65534))
	})); err != nil {
		t.Fatal(err)
	}
	before := listing(t, state)
	for _, words := range []string{
		"doctor", "doctor --prove", "serve", "serve --check", "run -- true", "list", "stats", "apply", "apply run-1", "mcp", "why", "stop",
		"cache list", "cache prune", "template list", "template build debian", "snapshot list", "approvals list", "audit list", "audit verify",
		"audit selftest", "policy list", "token list", "env", "kill box", "exec box -- true", "home list",
	} {
		out, err := say(strings.Fields(words)...)
		if err == nil || !strings.Contains(out, "belongs to another user") {
			t.Errorf("cofferdam %s: %v\n%s", words, err, out)
		}
	}
	if isThere(t, marker) {
		t.Error("the other user's program was run as root")
	}
	if after := listing(t, state); after != before {
		t.Errorf("something was made there:\n%s\nbefore:\n%s", after, before)
	}
}

func isThere(t *testing.T, at string) bool {
	t.Helper()
	_, err := os.Lstat(at)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// listing is all that is below a directory, with times.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	if err := filepath.Walk(dir, func(at string, info os.FileInfo, err error) error {
		if err == nil {
			b.WriteString(at + " " + info.Mode().String() + " " + info.ModTime().String() + "\n")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
