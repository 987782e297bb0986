package process_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

func sleeper(t *testing.T) (*exec.Cmd, process.ID) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, id
}

// TestANumberThatComesAgain: neither a signal nor a handle that is meant for a
// process reaches the one that has its number later.
func TestANumberThatComesAgain(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	first, was := sleeper(t)
	held, err := process.Open(was)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := was.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := held.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stat, err := process.Read(was.Pid); err != nil || !stat.Dead || !was.Is() {
		t.Errorf("dead and not waited for: %+v, %v", stat, err)
	}
	_ = first.Wait()
	if was.Is() || !errors.Is(was.Signal(0), process.ErrOver) {
		t.Error("a process that is over is there")
	}
	var second *exec.Cmd
	var is process.ID
	for is.Pid != was.Pid || is.Start == was.Start { // the start counts hundredths of a second
		if second != nil {
			_ = second.Process.Kill()
			_ = second.Wait()
		}
		if err := processtest.SetLast(was.Pid - 1); err != nil {
			t.Fatal(err)
		}
		second, is = sleeper(t)
	}
	if was.Is() || !is.Is() {
		t.Errorf("%v is %t, %v is %t", was, was.Is(), is, is.Is())
	}
	for what, err := range map[string]error{
		"a signal":             was.Signal(unix.SIGKILL),
		"a signal by a handle": held.Signal(unix.SIGKILL),
		"a handle":             opened(was),
	} {
		if !errors.Is(err, process.ErrOver) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if stat, err := process.Read(is.Pid); err != nil || stat.Dead {
		t.Errorf("the second process: %+v, %v", stat, err)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	live, err := process.Open(is)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if err := live.Await(over); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for one that lives: %v", err)
	}
	_ = second.Process.Kill()
	_ = second.Wait()
}

func opened(id process.ID) error {
	handle, err := process.Open(id)
	if err == nil {
		handle.Close()
	}
	return err
}

// TestNoManyAreSignalled runs where everybody is this test's.
func TestNoManyAreSignalled(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	cmd, id := sleeper(t)
	for _, pid := range []int{-1, 0, 1, -id.Pid} {
		if err := (process.ID{Pid: pid}).Signal(unix.SIGKILL); err == nil {
			t.Errorf("%d was signalled", pid)
		}
		if _, err := process.Hold(pid); err == nil {
			t.Errorf("%d is held", pid)
		}
	}
	if stat, err := process.Read(id.Pid); err != nil || stat.Dead {
		t.Errorf("%+v, %v", stat, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestSelf(t *testing.T) {
	self, err := process.Self()
	if err != nil || self.Pid != os.Getpid() || self.Start == 0 || !self.Is() {
		t.Errorf("%v, %v", self, err)
	}
	table, err := process.Table()
	if err != nil || table[self.Pid].ID != self || table[self.Pid].Parent != os.Getppid() {
		t.Errorf("%+v, %v", table[self.Pid], err)
	}
	if _, err := process.Of(1 << 30); !errors.Is(err, process.ErrOver) {
		t.Errorf("a number that nobody can have: %v", err)
	}
	if err := processtest.SetLast(3); err == nil {
		t.Error("the host's counter was wound")
	}
}

func TestParse(t *testing.T) {
	tail := " S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0"
	for _, name := range []string{"sh", ") R 9 9 9", "a b) (c", "\n"} {
		p, err := process.Parse(7, "7 ("+name+")"+tail)
		if err != nil || p != (process.Stat{ID: process.ID{Pid: 7, Start: 4242}, Parent: 1, Group: 2, Session: 3}) {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for _, line := range []string{"", "7 (sh", "7 (sh) S", "7 (sh) S" + strings.Repeat(" x", 30)} {
		if _, err := process.Parse(7, line); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("7 (sh) S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0")
	f.Fuzz(func(t *testing.T, line string) {
		if p, err := process.Parse(7, line); err == nil && p.Pid != 7 {
			t.Errorf("%+v", p)
		}
	})
}
