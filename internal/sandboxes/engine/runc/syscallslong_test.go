//go:build long

package runc_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// goldenCalls has what a container's kernel says of each system call.
const goldenCalls = "testdata/syscalls-amd64.txt"

// TestEverySystemCall: what the kernel says of each call inside is what the golden file
// says; no process is killed for one; what leads to more of the kernel is refused. The same
// program beside the container, as a user without any right, is refused less.
func TestEverySystemCall(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden list is of amd64")
	}
	s := newSite(t)
	program := filepath.Join(s.dir, "agent", "syscalls")
	command(t, repository(t), []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, "./internal/sandboxes/engine/runc/testdata/syscalls")
	calls := enginetest.SystemCalls(t, repository(t))
	argv := slices.Collect(maps.Values(calls))
	b := s.box(t, "calls")
	inside := enginetest.CallClasses(t, calls, b.must("", "/.cofferdam/bin/syscalls "+strings.Join(argv, " ")))
	beside := exec.CommandContext(t.Context(), program, argv...)
	beside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	beside.Dir = "/"
	out, err := beside.Output()
	if err != nil {
		t.Fatal(err)
	}
	outside := enginetest.CallClasses(t, calls, string(out))

	for _, name := range enginetest.DangerousCalls() {
		if inside[name] != "EPERM" && inside[name] != "ENOSYS" {
			t.Errorf("%s: %q", name, inside[name])
		}
	}
	freer := 0
	for name := range calls {
		if how := inside[name]; how == "killed" || how == "stuck" {
			t.Errorf("%s: its process was %s", name, how)
		}
		if inside[name] != "allowed" && outside[name] == "allowed" {
			freer++
		}
	}
	if freer < 10 || outside["unshare CLONE_NEWUSER"] != "allowed" && outside["io_uring_setup"] != "allowed" {
		t.Errorf("INCONCLUSIVE: without the filter only %d more calls are allowed", freer)
	}
	enginetest.CompareCalls(t, goldenCalls, "What the kernel says of each system call in a container: EPERM and ENOSYS are refusals.", inside)
}
