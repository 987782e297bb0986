package microvm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// roleLook makes the test binary say what the mount namespace of a process has in its root,
// whatever the process's own is: a process that got out of that would be there.
const roleLook = "microvm-look"

func look(pid string) error {
	runtime.LockOSThread()
	f, err := os.Open(filepath.Join("/proc", pid, "ns/mnt"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(f.Fd()), unix.CLONE_NEWNS)); err != nil {
		return err
	}
	entries, err := os.ReadDir("/")
	for _, e := range entries {
		fmt.Println(e.Name())
	}
	return err
}

func namespaceRoot(t *testing.T, pid int) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), self, roleLook, strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Fields(string(out))
}

// onlyItsRoot wants a process's mount namespace to have nothing but the process's root.
func onlyItsRoot(t *testing.T, pid int, may ...string) {
	t.Helper()
	has := namespaceRoot(t, pid)
	for _, name := range has {
		if !slices.Contains(may, name) {
			t.Errorf("the mount namespace of process %d has /%s", pid, name)
		}
	}
	if !slices.Contains(has, "own") || !slices.Contains(namespaceRoot(t, os.Getpid()), "proc") {
		t.Errorf("INCONCLUSIVE: the mount namespace of process %d has %v", pid, has)
	}
}
