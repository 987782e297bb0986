package backendtest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// TestFramesForAProcessThatIsGone: between the end of a process and the moment in which its exit is
// told, a command answers as a sandbox's does, and not with the kernel's words.
func TestFramesForAProcessThatIsGone(t *testing.T) {
	t.Parallel()
	process := exec.CommandContext(t.Context(), "true")
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Run(); err != nil {
		t.Fatal(err)
	}
	reader, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(reader.Close(), input.Close()); err != nil {
		t.Fatal(err)
	}
	c := &Commands{all: []*command{{
		view: keeper.Command{ID: "cmd1", PID: process.Process.Pid}, group: process.Process.Pid, input: input, changed: make(chan struct{}),
	}}}
	if err := c.Send(t.Context(), "cmd1", channel.FrameSignal, marshal(channel.Signal{Name: "TERM"})); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a signal: %v", err)
	}
	for _, payload := range []string{"late", ""} {
		if err := c.Send(t.Context(), "cmd1", channel.FrameStdin, []byte(payload)); err != nil {
			t.Errorf("the input %q: %v", payload, err)
		}
	}
}
