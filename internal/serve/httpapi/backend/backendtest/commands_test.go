package backendtest

import (
	"errors"
	"os"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestFramesForAProcessThatIsGone: between the end of a process and the moment in which its exit is
// told, a command answers as a sandbox's does, and not with the kernel's words.
func TestFramesForAProcessThatIsGone(t *testing.T) {
	t.Parallel()
	const gone = 1<<22 + 1 // beyond what Linux numbers: one that did end may have a successor by now, who would get the signal
	reader, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(reader.Close(), input.Close()); err != nil {
		t.Fatal(err)
	}
	c := &Commands{all: []*boxCommand{{
		view: keeper.Command{ID: "cmd1", PID: gone}, group: gone, input: input, changed: make(chan struct{}),
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
