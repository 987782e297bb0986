package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// nobody is the user and group that `as-user` runs as: one that owns nothing.
const nobody = 65534

// otherUser makes a place that a normal user can use: USER_DIR with the product
// in bin/, and home/, state/ and run/ of that user. It is gone with the script.
func otherUser(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: otheruser")
	}
	dir, err := os.MkdirTemp("", "cfu")
	ts.Check(err)
	ts.Defer(func() { os.RemoveAll(dir) })
	ts.Check(os.Chmod(dir, 0o755))
	ts.Setenv("USER_DIR", dir)
	ts.Check(os.Mkdir(filepath.Join(dir, "bin"), 0o755))
	for _, name := range []string{"cofferdam", "runsc"} {
		ts.Check(exec.Command("cp", filepath.Join(ts.Getenv("BIN"), name), filepath.Join(dir, "bin", name)).Run())
	}
	for _, name := range []string{"home", "state", "run"} {
		path := filepath.Join(dir, name)
		ts.Check(os.Mkdir(path, 0o700))
		ts.Check(os.Chown(path, nobody, nobody))
	}
	ts.Defer(func() {
		cmd := userCommand(ts, "cofferdam", "stop", "--force")
		if out, err := cmd.CombinedOutput(); err != nil {
			ts.Logf("stop the user's daemon: %v\n%s", err, out)
		}
	})
}

// asUser CODE COMMAND... runs a command as the other user, in its home, with an
// environment of its own, and demands an exit code.
func asUser(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || ts.Getenv("USER_DIR") == "" {
		ts.Fatalf("usage: as-user CODE COMMAND..., after otheruser")
	}
	cmd := userCommand(ts, args[1:]...)
	exits(ts, false, append([]string{args[0], "env", "-C", cmd.Dir, "-i"}, append(cmd.Env, cmd.Args...)...))
}

// userCommand drops to the other user by setpriv, which keeps no privilege.
func userCommand(ts *testscript.TestScript, args ...string) *exec.Cmd {
	dir := ts.Getenv("USER_DIR")
	cmd := exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"}, args...)...)
	cmd.Dir = filepath.Join(dir, "home")
	cmd.Env = []string{
		"HOME=" + cmd.Dir, "PATH=" + filepath.Join(dir, "bin") + ":/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
		"COFFERDAM_STATE=" + filepath.Join(dir, "state"), "COFFERDAM_RUNTIME=" + filepath.Join(dir, "run"),
	}
	for _, kv := range os.Environ() {
		if key, _, _ := strings.Cut(kv, "="); key != "HOME" && ofTheClient(key) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	return cmd
}

// rootless says whether this kernel lets normal users make namespaces.
func rootless() bool {
	cmd := exec.Command("unshare", "--user", "--map-root-user", "true")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return cmd.Run() == nil
}
