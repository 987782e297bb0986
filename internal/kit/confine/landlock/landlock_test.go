package landlock_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/landlock"
)

// envDir makes this program the one behind the fence: a folder with own, shown and others.
const envDir = "COFFERDAM_TEST_FENCED"

// threads try each thing, some of which were there before the fence.
const threads = 4

func TestMain(m *testing.M) {
	if dir := os.Getenv(envDir); dir != "" {
		fenced(dir)
		return
	}
	os.Exit(m.Run())
}

// attempts are what a process tries of a folder of its host.
func attempts(dir string) map[string]func() error {
	reads := func(name string) func() error {
		return func() error { _, err := os.ReadFile(filepath.Join(dir, name)); return err }
	}
	writes := func(name string) func() error {
		return func() error { return os.WriteFile(filepath.Join(dir, name), nil, 0o600) }
	}
	all := map[string]func() error{
		"read a secret": reads("others/secret"),
		"list secrets":  func() error { _, err := os.ReadDir(filepath.Join(dir, "others")); return err },
		"read a secret through a link of its own": reads("own/link"),
		"write beside": writes("others/new"), "write what is shown": writes("shown/new"), "write over a secret": writes("others/spare"),
		"move a file": func() error {
			return os.Rename(filepath.Join(dir, "others/spare"), filepath.Join(dir, "others/spare"))
		},
		"remove a folder": func() error { // which is not empty
			if err := unix.Rmdir(filepath.Join(dir, "others")); !errors.Is(err, unix.ENOTEMPTY) {
				return err
			}
			return nil
		},
		"run": func() error {
			p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
			if err == nil {
				_, err = p.Wait()
			}
			return err
		},
		"a memory": func() error { _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid())); return err },
		"signal":   func() error { return unix.Kill(os.Getppid(), 0) },
		"connect": func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 1, Addr: [4]byte{127, 0, 0, 1}}); !errors.Is(err, unix.ECONNREFUSED) {
				return err
			}
			return nil
		},
	}
	version, err := ll.LandlockGetABIVersion()
	if err != nil || version < 6 { // of the kernel that this runs on
		delete(all, "signal")
	}
	if err != nil || version < 4 {
		delete(all, "connect")
	}
	return all
}

// fenced tries all on threads from before, tells, gives up, and tries again.
func fenced(dir string) {
	asked, told := make(chan func() error), make(chan error)
	for range threads {
		go func() {
			runtime.LockOSThread()
			for call := range asked {
				told <- call()
			}
		}()
	}
	tell := func(when string) {
		for name, call := range attempts(dir) {
			refused := 0
			for range threads {
				asked <- call
			}
			for range threads {
				if err := <-told; errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
					refused++
				}
			}
			fmt.Printf("%s: %s: %d refused\n", when, name, refused)
		}
	}
	tell("before")
	if err := landlock.Enter(landlock.Reach{Own: []string{filepath.Join(dir, "own")}, Read: []string{filepath.Join(dir, "shown"), filepath.Join(dir, "file"), filepath.Join(dir, "none")}}); err != nil {
		fmt.Println("no fence:", err)
	}
	tell("after")
	fmt.Println("its own:", work(dir))
}

// work is what the process keeps.
func work(dir string) error {
	own := filepath.Join(dir, "own")
	for _, name := range []string{"shown/inside", "file"} {
		if _, err := os.ReadFile(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(own, "a/b"), 0o700), os.WriteFile(filepath.Join(own, "a/new"), []byte("text"), 0o600)); err != nil {
		return err
	}
	return errors.Join(os.Link(filepath.Join(own, "a/new"), filepath.Join(own, "linked")), os.Rename(filepath.Join(own, "a/new"), filepath.Join(own, "a/b/moved")),
		os.Truncate(filepath.Join(own, "a/b/moved"), 1), os.RemoveAll(filepath.Join(own, "a")))
}

// TestEnter: on every thread what is outside is refused, and what is kept is had as before.
// Before, the same attempts are not refused.
func TestEnter(t *testing.T) {
	t.Parallel()
	if err := landlock.Available(); err != nil {
		t.Fatalf("INCONCLUSIVE: %v", err)
	}
	dir := t.TempDir()
	for _, name := range []string{"own/x", "shown/inside", "file", "others/secret", "others/spare"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("canary"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "others/secret"), filepath.Join(dir, "own/link")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), envDir+"="+dir)
	out, err := cmd.CombinedOutput()
	said := string(out)
	if err != nil || !strings.Contains(said, "its own: <nil>\n") {
		t.Fatalf("%v: %s", err, said)
	}
	for name := range attempts(dir) {
		if !strings.Contains(said, fmt.Sprintf("after: %s: %d refused\n", name, threads)) {
			t.Errorf("ESCAPED: %s is not refused on all threads:\n%s", name, said)
		}
		if !strings.Contains(said, "before: "+name+": 0 refused\n") {
			t.Errorf("INCONCLUSIVE: %s is refused without a fence:\n%s", name, said)
		}
	}
}
