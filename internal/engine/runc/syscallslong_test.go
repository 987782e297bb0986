//go:build long

package runc_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// goldenCalls has what a container's kernel says of each system call.
const goldenCalls = "testdata/syscalls-amd64.txt"

// beyond are numbers after the last that anybody knows: of calls to come.
const beyond = 30

// untried don't come back, end one thread alone, or make the whole host write its disks.
var untried = []string{"pause", "vfork", "exit", "sync"}

// variants are calls that the filter judges by an argument.
var variants = map[string]string{
	"socket AF_UNIX": "41:1", "socket AF_NETLINK": "41:16", "socket AF_ALG": "41:38", "socket AF_VSOCK": "41:40",
	"clone CLONE_NEWUSER": "56:0x10000000", "clone CLONE_NEWNS": "56:0x20000", "clone CLONE_NEWNET": "56:0x40000000",
	"unshare CLONE_NEWUSER": "272:0x10000000", "unshare CLONE_FS": "272:0x200",
	"personality 0": "135:0", "personality READ_IMPLIES_EXEC": "135:0x400000", "personality ADDR_NO_RANDOMIZE": "135:0x40000",
	"x32 getpid": "0x40000027", "x32 ptrace": "0x40000209",
}

// dangerous are what no container may reach, whatever the golden file says.
func dangerous() []string {
	return []string{
		"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "bpf", "perf_event_open", "keyctl", "add_key", "request_key",
		"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "open_by_handle_at", "mount", "umount2", "fsopen", "fsmount", "move_mount", "open_tree",
		"mount_setattr", "pivot_root", "chroot", "setns", "unshare", "swapon", "swapoff", "reboot", "settimeofday", "clock_settime", "acct", "quotactl",
		"lookup_dcookie", "iopl", "ioperm", "syslog", "sethostname", "socket AF_VSOCK", "clone CLONE_NEWUSER", "unshare CLONE_NEWUSER",
	}
}

// TestEverySystemCall: what the kernel says of each call inside is what the golden file
// says; no process is killed for one; what leads to more of the kernel is refused. The same
// program beside the container, as a user without any right, is refused less.
func TestEverySystemCall(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the golden list is of amd64")
	}
	s := newSite(t)
	program := filepath.Join(s.dir, "agent", "syscalls")
	command(t, repository(t), []string{"CGO_ENABLED=0"}, "go", "build", "-o", program, "./internal/engine/runc/testdata/syscalls")
	calls := systemCalls(t)
	argv := slices.Collect(maps.Values(calls))
	b := s.box(t, "calls")
	inside := classes(t, calls, b.must("", "/.cofferdam/bin/syscalls "+strings.Join(argv, " ")))
	beside := exec.CommandContext(t.Context(), program, argv...)
	beside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	beside.Dir = "/"
	out, err := beside.Output()
	if err != nil {
		t.Fatal(err)
	}
	outside := classes(t, calls, string(out))

	for _, name := range dangerous() {
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
	compare(t, inside)
}

// systemCalls are all of this architecture, by name.
func systemCalls(t *testing.T) map[string]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys")
	list.Dir = repository(t)
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "unix", "zsysnum_linux_amd64.go"))
	if err != nil {
		t.Fatal(err)
	}
	all, last := maps.Clone(variants), 0
	for _, m := range regexp.MustCompile(`SYS_(\w+)\s+= (\d+)`).FindAllStringSubmatch(string(source), -1) {
		number, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		last = max(last, number)
		if name := strings.ToLower(m[1]); !slices.Contains(untried, name) {
			all[name] = m[2]
		}
	}
	if last < 450 {
		t.Fatalf("INCONCLUSIVE: the last call is %d", last)
	}
	for n := last + 1; n <= last+beyond; n++ {
		all["after the last, "+strconv.Itoa(n-last)] = strconv.Itoa(n)
	}
	return all
}

// classes are what the program says of each call, by name. Any error but two is one of a
// call that was made.
func classes(t *testing.T, calls map[string]string, output string) map[string]string {
	t.Helper()
	says := map[string]string{}
	for line := range strings.Lines(output) {
		call, how, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case how == strconv.Itoa(int(syscall.EPERM)):
			says[call] = "EPERM"
		case how == strconv.Itoa(int(syscall.ENOSYS)):
			says[call] = "ENOSYS"
		case how == "signal "+strconv.Itoa(int(syscall.SIGSYS)):
			says[call] = "killed"
		case how == "stuck":
			says[call] = how
		default:
			says[call] = "allowed"
		}
	}
	all := map[string]string{}
	for name, call := range calls {
		if all[name] = says[call]; all[name] == "" {
			t.Errorf("nothing was said of %s (%s)", name, call)
		}
	}
	return all
}

// compare holds the golden file against what is, name by name.
func compare(t *testing.T, inside map[string]string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# What the kernel says of each system call in a container: EPERM and ENOSYS are refusals.\n# Written by TestEverySystemCall with COFFERDAM_UPDATE=1.\n")
	for _, name := range slices.Sorted(maps.Keys(inside)) {
		fmt.Fprintf(&text, "%-7s %s\n", inside[name], name)
	}
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		if err := os.WriteFile(goldenCalls, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(goldenCalls)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		if class, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && class != "#" {
			known[strings.TrimSpace(name)] = class
		}
	}
	for name, class := range inside {
		if known[name] != class {
			t.Errorf("%s is %s, and was %q", name, class, known[name])
		}
		delete(known, name)
	}
	for name, class := range known {
		t.Errorf("%s was %s, and was not tried", name, class)
	}
}
