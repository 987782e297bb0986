package microvm_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// namespaceRoot is what the mount namespace of a process has in its root, whatever the
// process's own is: a process that got out of that would be there.
func namespaceRoot(t *testing.T, pid int) (names []string) {
	t.Helper()
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends
		err = enterNamespace(pid)
		entries, failed := os.ReadDir("/")
		err = errors.Join(err, failed)
		for _, e := range entries {
			names = append(names, e.Name())
		}
	}()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func enterNamespace(pid int) error {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns/mnt"))
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(unix.Unshare(unix.CLONE_FS), unix.Setns(int(f.Fd()), unix.CLONE_NEWNS))
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
