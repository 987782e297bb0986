package seccomp_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
)

// envRole makes this program the one that gives calls up, or its control.
const envRole = "COFFERDAM_TEST_FILTERED"

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "":
		os.Exit(m.Run())
	case "filtered":
		filtered(seccomp.Enter)
	case "connects":
		filtered(seccomp.EnterWithSockets)
	case "starts":
		starts(func() error { return seccomp.EnterToStart(false) })
		return
	case "network":
		starts(func() error { return seccomp.EnterToStart(true) })
		return
	case "inside":
		starts(seccomp.EnterInside)
		return
	case "without":
		fmt.Println(without(unix.ENOSYS))
		return
	case "unclear":
		fmt.Println(without(unix.EINVAL))
		return
	}
	tell()
}

// filtered gives the calls up, with threads that were there before.
func filtered(enter func() error) {
	hold := make(chan struct{})
	for range 4 {
		go func() {
			runtime.LockOSThread()
			<-hold
		}()
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fmt.Println("no_new_privs:", err)
	}
	if err := enter(); err != nil {
		fmt.Println("not filtered:", err)
	}
	close(hold)
}

// tell tries calls on several threads, and says for each whether it was refused.
func tell() {
	for name, call := range attempts() {
		results := make(chan error)
		for range 3 {
			go func() {
				runtime.LockOSThread() // the thread ends with the goroutine
				results <- call()
			}()
		}
		refused := 0
		for range 3 {
			if err := <-results; errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
				refused++
			}
		}
		fmt.Printf("%s: %d of 3 refused\n", name, refused)
	}
	// A server's work goes on: it takes the connections of a listener that it has.
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		fmt.Println("no listener:", err)
		return
	}
	conn, err := l.Accept()
	if err != nil {
		fmt.Println("no connection:", err)
		return
	}
	said, err := io.ReadAll(conn)
	fmt.Printf("heard %s %v\n", said, err)
}

func attempts() map[string]func() error {
	socket := func(family, kind int) func() error {
		return func() error {
			fd, err := unix.Socket(family, kind, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}
	}
	return map[string]func() error{
		"inet": socket(unix.AF_INET, unix.SOCK_STREAM), "inet6": socket(unix.AF_INET6, unix.SOCK_DGRAM), "unix": socket(unix.AF_UNIX, unix.SOCK_STREAM),
		"netlink": socket(unix.AF_NETLINK, unix.SOCK_RAW), "connect": func() error { return unix.Connect(-1, &unix.SockaddrInet4{Port: 1}) },
		"exec": func() error {
			cmd := exec.Command("/proc/self/exe", "-test.run=^$") // it ends by itself
			cmd.Env = []string{envRole + "="}
			return cmd.Run()
		},
		"clone": func() error { // of flags that go with no others
			_, _, errno := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_NEWNS|unix.CLONE_FS, 0, 0)
			return errno
		},
		"chmod": func() error { return unix.Fchmodat(unix.AT_FDCWD, "/proc/self/exe/none", 0o777, 0) },
		"chown": func() error { return unix.Fchownat(unix.AT_FDCWD, "/proc/self/exe/none", 1, 1, 0) },
		"kill":  func() error { return unix.Kill(os.Getppid(), 0) },
		"kill a thread of another": func() error {
			return unix.Tgkill(os.Getppid(), os.Getppid(), 0)
		},
		"ptrace":  func() error { return unix.PtraceAttach(1 << 22) },
		"unshare": func() error { return unix.Unshare(0) },
		"chroot":  func() error { return unix.Chroot("/proc/self/exe/none") },
		"clone3": func() error {
			_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, 0, 0, 0)
			return errno
		},
		"io_uring": func() error {
			_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0)
			return errno
		},
	}
}

// without has this process refused seccomp with an error, and says what that is taken for.
func without(refusal unix.Errno) string {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_SECCOMP},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(refusal)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err.Error()
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p))); errno != 0 {
		return errno.Error()
	}
	return fmt.Sprintf("missing: %v %v", errors.Is(seccomp.Available(), seccomp.ErrMissing), errors.Is(seccomp.Enter(), seccomp.ErrMissing))
}

// TestAKernelWithoutFilters: it is told from one that refuses a program, and from one that
// finds the question invalid although it has modes of system calls.
func TestAKernelWithoutFilters(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{"without": "missing: true true\n", "unclear": "missing: false false\n"} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), envRole+"="+role)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %s%v", role, out, err)
		}
	}
}

// said is what this program says in a role. It is handed a listener, at which somebody
// connects.
func said(t *testing.T, role string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), envRole+"="+role)
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestEnter: on every thread what was given up is refused, and a server goes on. Before,
// the same calls are not refused.
func TestEnter(t *testing.T) {
	t.Parallel()
	filtered, control := said(t, "filtered"), said(t, "control")
	for name := range attempts() {
		if !strings.Contains(filtered, name+": 3 of 3 refused\n") {
			t.Errorf("%s is not refused on all threads:\n%s", name, filtered)
		}
		if !strings.Contains(control, name+": 0 of 3 refused\n") {
			t.Errorf("INCONCLUSIVE: %s is refused without a filter:\n%s", name, control)
		}
	}
	for _, text := range []string{filtered, control} {
		if !strings.Contains(text, "heard hello <nil>") || strings.Contains(text, "not filtered") {
			t.Errorf("the server says:\n%s", text)
		}
	}
}

// TestEnterWithSockets: who connects keeps what leads over IP, and nothing else.
func TestEnterWithSockets(t *testing.T) {
	t.Parallel()
	text := said(t, "connects")
	for name := range attempts() {
		refused := 3
		if name == "inet" || name == "inet6" || name == "connect" {
			refused = 0
		}
		if want := fmt.Sprintf("%s: %d of 3 refused\n", name, refused); !strings.Contains(text, want) {
			t.Errorf("not %q:\n%s", want, text)
		}
	}
}
