package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLinksOfAnotherInstallationsAgents: a normal user runs an agent in a project, which leaves a link there. Later root
// runs something in the same project, by root's own daemon, and mounts a name of it. The link was an agent's all the same.
// The control: the installation by which the agent ran.
func TestLinksOfAnotherInstallationsAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("makes sandboxes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("makes sandboxes as root and as another user")
	}
	const user = 1000
	top, err := os.MkdirTemp("", "inst") //nolint:usetesting // another user has to reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	project, secret, home, programs := filepath.Join(top, "project"), filepath.Join(top, "secret"), filepath.Join(top, "home"), filepath.Join(top, "bin")
	for _, dir := range []string{project, secret, home, programs} {
		err = errors.Join(err, os.Mkdir(dir, 0o755))
	}
	err = errors.Join(err, os.Chmod(top, 0o755), os.Chown(project, user, user), os.Chown(home, user, user), os.WriteFile(filepath.Join(secret, "key"), []byte("TOPSECRET\n"), 0o644))
	for _, name := range []string{"cofferdam", "runsc"} {
		data, rerr := os.ReadFile(filepath.Join("..", "..", "bin", name))
		err = errors.Join(err, rerr, os.WriteFile(filepath.Join(programs, name), data, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	as := func(uid uint32, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(programs, "cofferdam"), args...)
		cmd.Dir = project
		state := filepath.Join(home, "state")
		if uid == 0 {
			state = filepath.Join(top, "root")
		}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "COFFERDAM_STATE=" + state, "COFFERDAM_RUNTIME=" + state + "-run"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = as(user, "stop", "--force"); _, _ = as(0, "stop", "--force") })
	run := func(uid uint32, mount, line string) (string, error) {
		return as(uid, "run", "--template", "host", "--no-project", "--mount", mount, "--", "sh", "-c", line)
	}
	if out, err := run(user, ".:/w:rw", "ln -s "+secret+" /w/data"); err != nil {
		t.Fatalf("INCONCLUSIVE: %v: %s", err, out)
	}
	if out, err := run(user, "./data:/data", "cat /data/key"); err == nil || !strings.Contains(out, "an agent could have put it there") {
		t.Fatalf("INCONCLUSIVE, the control: %v: %s", err, out)
	}
	out, err := run(0, "./data:/data:rw", "cat /data/key; echo planted > /data/planted")
	if err == nil || strings.Contains(out, "TOPSECRET") {
		t.Errorf("root's sandbox is shown what a user's agent chose: %v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(secret, "planted")); err == nil {
		t.Error("and writes there as root")
	}
	wide := filepath.Join(project, "policy.yaml")
	if err := errors.Join(os.WriteFile(wide, []byte(generousRules), 0o644), os.Chown(wide, user, user)); err != nil { // as an agent of the user's may
		t.Fatal(err)
	}
	if out, err := as(0, "run", "--template", "host", "--no-project", "--policy", "policy.yaml", "--", "true"); err == nil || !strings.Contains(out, "nobody has seen what is in it") {
		t.Errorf("root's run is decided by a policy that a user's agent may have written: %v: %s", err, out)
	}
	if out, err := as(0, "run", "--template", "host", "--no-project", "--mount", secret+":/data", "--", "cat", "/data/key"); err != nil || !strings.Contains(out, "TOPSECRET") { // the control
		t.Errorf("root's own directory: %v: %s", err, out)
	}
}
