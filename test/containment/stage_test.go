package containment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
)

// stageVariable tells the stage that it is one, and where the probe is.
const stageVariable = "CONTAINMENT_STAGE"

// TestMain builds the probe and runs the tests in namespaces of their own. On
// the stage it runs them, or plays the keeper of the weak sandboxes.
func TestMain(m *testing.M) {
	// What the weak sandboxes' keeper starts of this binary has an environment
	// of its own, and is known by its first argument.
	if len(os.Args) > 2 && os.Args[1] == roleStage {
		playStage()
	}
	role := len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "enginetest-")
	if role || os.Getenv(stageVariable) != "" {
		enginetest.Main(m, func(args []string) error { return gvisor.Stage(args[0], args[1:]) })
	}
	code, err := enterStage()
	if err != nil {
		fmt.Fprintln(os.Stderr, "containment:", err)
		code = 1
	}
	os.Exit(code)
}

// enterStage runs this binary again as the stage.
func enterStage() (int, error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("these tests make network namespaces and need root: sudo make test")
	}
	dir, err := os.MkdirTemp("", "cfp")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := buildProbe(dir); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, os.Args[1:]...) // it is this test; the test's own timeout ends it
	cmd.Env = append(os.Environ(), stageVariable+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWUTS, Pdeathsig: unix.SIGKILL}
	runtime.LockOSThread() // the stage dies with this thread
	err = cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		return cmd.ProcessState.ExitCode(), nil
	}
	return cmd.ProcessState.ExitCode(), err
}

// buildProbe puts the probe into dir, and a copy that is setuid root.
func buildProbe(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil { // sandboxes' users read it
		return err
	}
	path := filepath.Join(dir, "probe")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "./probe") // go ends by itself
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the probe: %w\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	setuid := filepath.Join(dir, "setuid")
	if err := os.WriteFile(setuid, text, 0o755); err != nil { // a program
		return err
	}
	return os.Chmod(setuid, 0o755|os.ModeSetuid|os.ModeSetgid)
}

// probeDir is where the probe is on the host.
func probeDir() string { return os.Getenv(stageVariable) }

// repository is a path below the repository's root.
func repository(t *testing.T, below ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{"..", ".."}, below...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is missing: run make build first", path)
	}
	return path
}

// outcome is what a command printed and how it ended.
type outcome struct {
	text string
	code int
}

// outside runs the probe as a plain process of the stage, as root and with all
// that root may do, for controls that a weak sandbox can't give.
func (s *stage) outside(t *testing.T, change func(*exec.Cmd), args ...string) outcome {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(probeDir(), "probe"), args...)
	cmd.Dir = "/"
	// Its changes of the system's names and mounts are its own.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUTS | unix.CLONE_NEWNS}
	if change != nil {
		change(cmd)
	}
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatalf("run %v outside: %v", args, err)
	}
	return outcome{string(out), cmd.ProcessState.ExitCode()}
}

// ip runs lines of ip(8) in the current thread's network.
func ip(ctx context.Context, lines ...string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w\n%s", err, out)
	}
	return nil
}
