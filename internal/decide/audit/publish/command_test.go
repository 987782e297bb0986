package publish

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
)

// TestNoProgramOfASandboxIsRun: a program that lies where a sandbox may write is not run by
// the daemon for its checkpoints, as none is for a tool or a secret. The control is the file of
// checkpoints, which is not written through a link there.
func TestNoProgramOfASandboxIsRun(t *testing.T) {
	project, host := t.TempDir(), t.TempDir()
	ran, victim := filepath.Join(host, "ran"), filepath.Join(host, "victim")
	// The program that was written inside, in a run that may write to the project.
	if err := os.WriteFile(filepath.Join(project, "publish.sh"), []byte("#!/bin/sh\nid -u > "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(victim, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(project, "kept")); err != nil {
		t.Fatal(err)
	}
	p, err := hostpath.Resolve(project, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	written := func() ([]hostpath.Tree, error) { return []hostpath.Tree{{Path: p.Name, ID: p.ID}}, nil }
	publisher := startPublisher(Config{
		File: filepath.Join(project, "kept"), Written: written, Command: []string{filepath.Join(project, "publish.sh")}, Dir: t.TempDir(),
		Latest: func() (int64, []byte) { return 1, []byte(note) }, Log: slog.New(slog.DiscardHandler),
	}, fileTarget{filepath.Join(project, "kept"), written}, commandTarget{[]string{filepath.Join(project, "publish.sh")}, written, &executable.Sums{}})
	publisher.Close() // which gives each target an attempt
	if text, err := os.ReadFile(victim); err != nil || len(text) > 0 {
		t.Fatalf("the control: %q, %v", text, err)
	}
	if uid, err := os.ReadFile(ran); err == nil {
		t.Errorf("the daemon ran the sandbox's program as user %s", uid)
	}
}

// TestNoProgramOfAnotherUserIsRun: their agents are on no record here, and could have written it. The control is the same
// program of this user's.
func TestNoProgramOfAnotherUserIsRun(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("INCONCLUSIVE: only root can make another user's files")
	}
	dir := t.TempDir()
	program, ran := filepath.Join(dir, "publish.sh"), filepath.Join(dir, "ran")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho ran >> "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	none := func() ([]hostpath.Tree, error) { return nil, nil }
	target := commandTarget{[]string{program}, none, &executable.Sums{}}
	if err := target.publishNote(t.Context(), []byte(note)); err != nil {
		t.Fatalf("the control: %v", err)
	}
	if err := os.Chown(program, 1000, 1000); err != nil {
		t.Fatal(err)
	}
	if err := target.publishNote(t.Context(), []byte(note)); err == nil || !strings.Contains(err.Error(), "belongs to user 1000") {
		t.Errorf("another user's program: %v", err)
	}
	if text, err := os.ReadFile(ran); err != nil || string(text) != "ran\n" {
		t.Errorf("it ran: %q, %v", text, err)
	}
}
