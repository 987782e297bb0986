package seccomp_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// starts has a thread give calls up by enter, and this program started from it, which tells.
func starts(enter func() error) {
	runtime.LockOSThread() // the thread ends with this process
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fmt.Println("no_new_privs:", err)
	}
	if err := enter(); err != nil {
		fmt.Println("not filtered:", err)
	}
	cmd := exec.Command("/proc/self/exe") // it ends by itself
	cmd.Env = append(os.Environ(), envRole+"=told")
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "listener")}
	out, err := cmd.CombinedOutput()
	fmt.Printf("%s%v\n", out, err)
}

// TestWhatIsStarted: a program that is started under a filter runs, has the calls that it is
// left, and none of the others, on no thread. The same program without one has them all.
func TestWhatIsStarted(t *testing.T) {
	t.Parallel()
	free := said(t, "control")
	for role, has := range map[string][]string{
		"starts":  {"unix", "exec", "connect", "kill a thread of another"},
		"network": {"unix", "exec", "inet", "inet6", "netlink", "connect", "kill a thread of another"},
		"inside":  {"unix", "exec", "inet", "inet6", "netlink", "connect", "kill", "kill a thread of another", "ptrace", "chmod", "chown"},
	} {
		text := said(t, role)
		for name := range attempts() {
			want := "3 of 3 refused"
			if slices.Contains(has, name) {
				want = "0 of 3 refused"
			}
			if !strings.Contains(text, name+": "+want+"\n") {
				t.Errorf("%s: %s: want %s:\n%s", role, name, want, text)
			}
			if !strings.Contains(free, name+": 0 of 3 refused\n") {
				t.Errorf("INCONCLUSIVE: %s is refused without a filter", name)
			}
		}
		if !strings.Contains(text, "heard hello <nil>\n") {
			t.Errorf("%s: it does not work: %s", role, text)
		}
	}
}
