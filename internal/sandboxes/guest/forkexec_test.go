package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// TestForkExecLimits: a program has its limit, nobody traces it, and its end is there to be
// collected; without a limit it has its parent's.
func TestForkExecLimits(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &own); err != nil {
		t.Fatal(err)
	}
	const look = "grep -E '^(Max processes|TracerPid)' /proc/self/limits /proc/self/status; exit 3"
	for limit, want := range map[uint64]string{0: "", own.Cur / 2: fmt.Sprint(own.Cur / 2)} {
		text, status, err := runLimited("/bin/sh", []string{"sh", "-c", look}, limit)
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(text)
		if status.ExitStatus() != 3 || len(fields) < 4 || !strings.HasSuffix(text, "TracerPid:\t0") {
			t.Errorf("with %d it ended with %d and said %q", limit, status, text)
		}
		if limited := strings.Contains(text, " "+want+" "); want != "" && !limited {
			t.Errorf("with %d it said %q", limit, text)
		} else if limit == 0 && strings.Contains(text, fmt.Sprintf(" %d ", own.Cur/2)) {
			t.Errorf("INCONCLUSIVE: without a limit it has that of the others: %q", text)
		}
	}
	if _, _, err := runLimited("/nowhere", []string{"x"}, 100); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a program that is not there: %v", err)
	}
}

// TestForkExecHoldsFromTheBegin: not even the first thing that a program does is without
// the limit. Of many that read theirs at once, none has another.
func TestForkExecHoldsFromTheBegin(t *testing.T) {
	for range 30 {
		text, _, err := runLimited("/bin/grep", []string{"grep", "Max processes", "/proc/self/limits"}, 4321)
		if err != nil || strings.Count(text, " 4321 ") != 2 {
			t.Fatalf("it began with %q (%v)", text, err)
		}
	}
}

// TestForkExecLosesGroups: a command is in its user's group, and in none of the agent's.
func TestForkExecLosesGroups(t *testing.T) {
	before, err := unix.Getgroups()
	if err == nil {
		err = syscall.Setgroups([]int{4242}) // of all threads
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setgroups(before) })
	for groups, want := range map[bool]string{true: "1000", false: "1000 4242"} { // the latter is the control
		text, _, err := runProgram(program{file: "/usr/bin/id", argv: []string{"id", "-G"}, uid: 1000, gid: 1000, groups: groups})
		if err != nil || text != want {
			t.Errorf("it is in the groups %q, not %q (%v)", text, want, err)
		}
	}
}

// TestAStartIsGivenUp: one that never begins fails in its time, and its process is gone.
func TestAStartIsGivenUp(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	program := program{file: own, argv: []string{"own"}, dir: "/", files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}, uid: os.Getuid(), gid: os.Getgid()}
	text, err := os.ReadFile("/bin/true")
	if err == nil {
		err = os.WriteFile(own, text, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	r := newReaper()
	var told *os.File
	var root process.ID
	_, err = r.startChild(func() (process.ID, error) {
		pid, reading, err := program.beginChild()
		if err != nil {
			return process.ID{}, err
		}
		told = reading
		root, err = process.Of(pid)
		return root, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	if err := r.awaitChild(root, told, newClock(), time.Millisecond); !errors.Is(err, errHeldUp) {
		t.Errorf("it was waited for: %v", err)
	}
	if status, err := awaitChild(root.Pid); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %d (%v)", status, err)
	}
}

func runLimited(file string, argv []string, limit uint64) (text string, status unix.WaitStatus, err error) {
	return runProgram(program{file: file, argv: argv, uid: os.Getuid(), gid: os.Getgid(), processes: limit})
}

func runProgram(p program) (text string, status unix.WaitStatus, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", 0, err
	}
	defer out.Close()
	p.env, p.dir, p.files = []string{"PATH=/bin:/usr/bin"}, "/", [3]*os.File{os.Stdin, in, in}
	pid, told, err := p.beginChild()
	if err := errors.Join(err, in.Close()); err != nil {
		return "", 0, err
	}
	defer told.Close()
	refused := awaitBegun(told, time.Minute)
	data, err := io.ReadAll(out)
	status, gone := awaitChild(pid)
	return strings.TrimSpace(string(data)), status, errors.Join(refused, err, gone)
}
