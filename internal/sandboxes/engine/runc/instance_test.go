package runc

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// startShell starts a shell with a child, in namespaces of its own if apart.
func startShell(t *testing.T, apart bool) process.ID {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 1000 & wait")
	if apart {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	awaitChild(t, id, "S")
	return id
}

// awaitChild waits until the only child of a process has a state.
func awaitChild(t *testing.T, parent process.ID, state string) {
	t.Helper()
	for t.Context().Err() == nil {
		if childState(t, parent) == state {
			return
		}
	}
	t.Fatalf("the child of %s is not in the state %s", parent, state)
}

// childState is the state of a process's only child, as ps says it; "" without one.
func childState(t *testing.T, parent process.ID) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-o", "state=", "--ppid", strings.Fields(parent.String())[0]).Output()
	var none *exec.ExitError
	if err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestSignalOthers reaches what is around a sandbox's first process, and nobody if its number
// has come to be another's, or if it is in the namespace of who asks.
func TestSignalOthers(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	inside, beside := startShell(t, true), startShell(t, false)
	recycled := inside
	recycled.Start++
	for name, first := range map[string]process.ID{
		"a number that came again": recycled, "its own namespace": beside,
	} {
		if err := signalOthers(first, unix.SIGSTOP); err == nil {
			t.Errorf("%s: processes were signalled", name)
		}
	}
	for _, parent := range []process.ID{inside, beside} {
		if state := childState(t, parent); state != "S" {
			t.Errorf("a child of %s was reached: it is in the state %q", parent, state)
		}
	}
	// The control: it reaches those whom it means, and only these.
	if err := signalOthers(inside, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitChild(t, inside, "T")
	if state := childState(t, beside); state != "S" {
		t.Errorf("another's child is in the state %q", state)
	}
}

// olderKeeper tells numbers alone: those of each look.
type olderKeeper struct {
	sandboxKeeper
	looks [][]int
}

func (k *olderKeeper) Get(context.Context, string) (keeper.Sandbox, error) {
	pids := k.looks[0]
	if len(k.looks) > 1 {
		k.looks = k.looks[1:]
	}
	return keeper.Sandbox{Pids: pids}, nil
}

// TestFirstOfOlderKeeper: after an upgrade the keeper is still the older one, and its
// sandboxes stop and go on; a number that it has given up is nobody.
func TestFirstOfOlderKeeper(t *testing.T) {
	t.Parallel()
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	one := &Instance{id: "sb-1", engine: &Engine{keeper: &olderKeeper{looks: [][]int{{self.Pid}}}}}
	if first, err := one.firstProcess(t.Context()); err != nil || first != self {
		t.Errorf("%v, %v", first, err)
	}
	for _, looks := range [][][]int{{{self.Pid}, {}}, {{self.Pid}, {self.Pid + 1}}, {{}}} {
		one.engine.keeper = &olderKeeper{looks: looks}
		if first, err := one.firstProcess(t.Context()); !errors.Is(err, process.ErrOver) {
			t.Errorf("%v: %v, %v", looks, first, err)
		}
	}
}
