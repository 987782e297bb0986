//go:build long

package microvm_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// Golden files: what a machine's kernel says of each system call inside, and which of them
// the monitor has left on the host.
const (
	goldenInside  = "testdata/syscalls-inside-amd64.txt"
	goldenMonitor = "testdata/syscalls-monitor-amd64.txt"
)

// TestEverySystemCall: what may be called inside of a machine, and what the monitor may
// call, is what the golden files say; no process inside is killed for a call; what leads to
// more of either kernel is refused.
func TestEverySystemCall(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden lists are of amd64")
	}
	s := newSite(t)
	subject := s.subject(t)
	program := filepath.Join(s.dir, "agent", "syscalls")
	command(t, repository(t), []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, "./internal/sandboxes/engine/runc/testdata/syscalls")
	calls := enginetest.SystemCalls(t, repository(t))
	b := s.box(t, subject, s.spec("calls"))
	t.Run("the monitor", func(t *testing.T) { testMonitorsCalls(t, b, calls) })
	t.Run("inside", func(t *testing.T) { testCallsInside(t, b, program, calls) })
}

// testCallsInside has each call made inside, and the same beside the machine by a user
// without any right, to whom less is refused.
func testCallsInside(t *testing.T, b box, program string, calls map[string]string) {
	t.Helper()
	argv := slices.Sorted(maps.Values(calls))
	var says strings.Builder
	for part := range slices.Chunk(argv, 100) { // each part within what a command may last here
		text, code := b.says("", "/.cofferdam/bin/syscalls "+strings.Join(part, " "))
		if code != 0 {
			t.Fatalf("%d: %s", code, text)
		}
		says.WriteString(text + "\n")
	}
	inside := enginetest.CallClasses(t, calls, says.String())
	beside := exec.CommandContext(t.Context(), program, argv...)
	beside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	beside.Dir = "/"
	out, err := beside.Output()
	if err != nil {
		t.Fatal(err)
	}
	outside := enginetest.CallClasses(t, calls, string(out))
	freer := 0
	for name := range calls {
		if how := inside[name]; how == "killed" || how == "stuck" {
			t.Errorf("%s: its process was %s", name, how)
		}
		if inside[name] != "allowed" && outside[name] == "allowed" {
			freer++
		}
	}
	for _, name := range enginetest.DangerousCalls() {
		if name == "settimeofday" || name == "clock_settime" { // the agent's: a command has no right to them, which its argument is looked at before
			continue
		}
		if inside[name] != "EPERM" && inside[name] != "ENOSYS" {
			t.Errorf("%s: %q", name, inside[name])
		}
	}
	if freer < 10 || outside["io_uring_setup"] != "allowed" {
		t.Errorf("INCONCLUSIVE: beside the machine only %d more calls are allowed", freer)
	}
	enginetest.CompareCalls(t, goldenInside, "What a machine's kernel says of each system call inside: EPERM and ENOSYS are refusals.", inside)
}

// testMonitorsCalls reads the filters of the monitor's threads. This process, which is under
// none, shows that the reading finds what is allowed, too.
func testMonitorsCalls(t *testing.T, b box, calls map[string]string) {
	t.Helper()
	known, err := b.Keeper.Get(t.Context(), b.id)
	if err != nil || len(known.Pids) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	monitor := verdicts(t, known.Pids[0], calls)
	for _, name := range enginetest.DangerousCalls() {
		if monitor[name] == "allowed" {
			t.Errorf("the monitor may call %s", name)
		}
	}
	for _, name := range []string{"execve", "execveat", "fork", "vfork", "setuid", "kill", "tkill", "socket AF_NETLINK", "ptrace", "process_vm_writev", "clone3", "x32 getpid"} {
		if monitor[name] == "allowed" {
			t.Errorf("the monitor may call %s", name)
		}
	}
	for _, name := range []string{"read", "write", "ppoll", "futex", "mmap", "ioctl", "socket AF_UNIX"} {
		if monitor[name] != "allowed" {
			t.Errorf("INCONCLUSIVE: %s is %s, without which no monitor runs", name, monitor[name])
		}
	}
	free := exec.CommandContext(t.Context(), "/bin/sleep", "1000")
	if err := free.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(free.Process.Kill(), free.Wait()) }() // it was killed
	for name, verdict := range verdicts(t, free.Process.Pid, calls) {
		if verdict != "allowed" {
			t.Errorf("INCONCLUSIVE: a process under no filter has %s %s", name, verdict)
		}
	}
	enginetest.CompareCalls(t, goldenMonitor, "What the filters say of each system call that a machine's monitor makes on the host.", monitor)
}

// verdicts are what the filters of a process say of each call; all its threads must be under
// the same.
func verdicts(t *testing.T, pid int, calls map[string]string) map[string]string {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("the threads of %d: %v", pid, err)
	}
	var all map[string]string
	for _, thread := range threads {
		tid, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			t.Fatal(err)
		}
		filters, err := filtersOf(tid)
		if err != nil {
			t.Fatalf("the filters of thread %d: %v", tid, err)
		}
		its := map[string]string{}
		for name, call := range calls {
			if its[name], err = verdict(filters, call); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if all != nil && !maps.Equal(all, its) {
			t.Errorf("thread %d of %d is under other filters than the rest", tid, pid)
		}
		all = its
	}
	return all
}

// filtersOf reads a thread's filters, which takes that it stands still meanwhile.
func filtersOf(tid int) (all [][]bpf.RawInstruction, err error) {
	runtime.LockOSThread() // a thread is traced by a thread
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(tid); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.PtraceDetach(tid)) }()
	if err := unix.PtraceInterrupt(tid); err != nil {
		return nil, err
	}
	if _, err := unix.Wait4(tid, nil, unix.WALL, nil); err != nil {
		return nil, err
	}
	for n := uintptr(0); ; n++ {
		length, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SECCOMP_GET_FILTER, uintptr(tid), n, 0, 0, 0)
		if errno == unix.ENOENT || errno == unix.EINVAL && n == 0 { // no more, or none at all
			return all, nil
		}
		if errno != 0 {
			return nil, errno
		}
		raw := make([]unix.SockFilter, length)
		if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SECCOMP_GET_FILTER, uintptr(tid), n, uintptr(unsafe.Pointer(&raw[0])), 0, 0); errno != 0 {
			return nil, errno
		}
		filter := make([]bpf.RawInstruction, 0, len(raw))
		for _, i := range raw {
			filter = append(filter, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
		}
		all = append(all, filter)
	}
}

// verdict is the strictest that any filter says of a call. A first argument that is not given
// is one that no filter knows.
func verdict(filters [][]bpf.RawInstruction, call string) (string, error) {
	number, argument, given := strings.Cut(call, ":")
	nr, err := strconv.ParseUint(number, 0, 32)
	first := ^uint64(0)
	if given && err == nil {
		first, err = strconv.ParseUint(argument, 0, 64)
	}
	if err != nil {
		return "", err
	}
	// struct seccomp_data, whose words the machine of the package bpf reads as a network's.
	data := make([]byte, 64)
	for word, value := range map[int]uint32{0: uint32(nr), 4: unix.AUDIT_ARCH_X86_64, 16: uint32(first), 20: uint32(first >> 32)} {
		binary.BigEndian.PutUint32(data[word:], value)
	}
	strictest := "allowed"
	for _, raw := range filters {
		filter, ok := bpf.Disassemble(raw)
		if !ok {
			return "", errors.New("a filter has an instruction that is not known")
		}
		machine, err := bpf.NewVM(filter)
		if err != nil {
			return "", err
		}
		says, err := machine.Run(data)
		if err != nil {
			return "", err
		}
		switch uint32(says) & unix.SECCOMP_RET_ACTION_FULL {
		case unix.SECCOMP_RET_ALLOW:
		case unix.SECCOMP_RET_ERRNO:
			if strictest == "allowed" {
				strictest = "refused"
			}
		case unix.SECCOMP_RET_KILL_PROCESS, unix.SECCOMP_RET_KILL_THREAD, unix.SECCOMP_RET_TRAP:
			strictest = "deadly"
		default:
			return "", fmt.Errorf("a filter says %#x", says)
		}
	}
	return strictest, nil
}

// TestFilters: the reading of filters tells a call that is refused from one that is not.
func TestFilters(t *testing.T) {
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: 3},
		bpf.LoadAbsolute{Off: 16, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{"41:1": "allowed", "41:2": "refused", "41": "refused", "42": "allowed"} {
		if got, err := verdict([][]bpf.RawInstruction{filter}, call); got != want || err != nil {
			t.Errorf("%s: %s, %v", call, got, err)
		}
	}
}
