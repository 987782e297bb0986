//go:build long

package enginetest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

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

// DangerousCalls are what no sandbox may reach that is not another kernel's business, whatever
// a golden file says.
func DangerousCalls() []string {
	return []string{
		"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "bpf", "perf_event_open", "keyctl", "add_key", "request_key",
		"io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "open_by_handle_at", "mount", "umount2", "fsopen", "fsmount", "move_mount", "open_tree",
		"mount_setattr", "pivot_root", "chroot", "setns", "unshare", "swapon", "swapoff", "reboot", "settimeofday", "clock_settime", "acct", "quotactl",
		"lookup_dcookie", "iopl", "ioperm", "syslog", "sethostname", "socket AF_VSOCK", "clone CLONE_NEWUSER", "unshare CLONE_NEWUSER",
	}
}

// SystemCalls are all of this architecture, by name: each is a number, or one with a first
// argument, as the program in runc/testdata/syscalls takes them.
func SystemCalls(t *testing.T, repository string) map[string]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys")
	list.Dir = repository
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

// CallClasses returns what that program says of each call, by name. Any error but two is one of a
// call that was made.
func CallClasses(t *testing.T, calls map[string]string, output string) map[string]string {
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

// CompareCalls holds a golden file, which begins with a heading, against what is, name by name.
func CompareCalls(t *testing.T, file, heading string, is map[string]string) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n# Written by %s with COFFERDAM_UPDATE=1.\n", heading, t.Name())
	for _, name := range slices.Sorted(maps.Keys(is)) {
		fmt.Fprintf(&text, "%-7s %s\n", is[name], name)
	}
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(golden)) {
		if class, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && class != "#" {
			known[strings.TrimSpace(name)] = class
		}
	}
	for name, class := range is {
		if known[name] != class {
			t.Errorf("%s is %s, and was %q", name, class, known[name])
		}
		delete(known, name)
	}
	for name, class := range known {
		t.Errorf("%s was %s, and was not tried", name, class)
	}
}
