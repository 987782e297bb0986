package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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

func runLimited(file string, argv []string, limit uint64) (text string, status unix.WaitStatus, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return "", 0, err
	}
	defer out.Close()
	pid, err := forkExec(file, argv, &syscall.ProcAttr{
		Env: []string{"PATH=/bin:/usr/bin"}, Files: []uintptr{0, in.Fd(), in.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	}, limit)
	if err := errors.Join(err, in.Close()); err != nil {
		return "", 0, err
	}
	data, err := io.ReadAll(out)
	if err != nil {
		return "", 0, err
	}
	status, err = awaitChild(pid)
	return strings.TrimSpace(string(data)), status, err
}
