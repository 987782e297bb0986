package keeper

import (
	"fmt"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// wrote is a command that has written so much and has ended, or runs on.
func wrote(id string, size int, ended bool, asked int64) *keptCommand {
	c := newKeptCommand(&channel.Exec{ID: id, Argv: []string{"x"}}, ExecOptions{RingBytes: asked}, nil)
	for range size >> 16 {
		c.out.append(channel.FrameStdout, make([]byte, 64<<10))
	}
	if ended {
		c.out.closeRing()
		close(c.done)
	}
	return c
}

// TestOutputOfOneSandbox: whatever runs and has run in a sandbox, and however
// much it writes, the keeper keeps no more than a sandbox may cost it.
func TestOutputOfOneSandbox(t *testing.T) {
	t.Parallel()
	const ring = 4 << 20
	s := &sandbox{keepEnded: 64}
	for i := range 40 {
		s.commands = append(s.commands, wrote(fmt.Sprint("ended", i), ring, true, ring))
		s.pruneCommands()
	}
	ended := int64(0)
	for _, c := range s.commands {
		ended += c.out.memoryHeld()
	}
	if ended > keptOutput || len(s.commands) < 3 || s.commands[len(s.commands)-1].id != "ended39" {
		t.Errorf("%d bytes of %d ended commands are kept", ended, len(s.commands))
	}
	running := int64(0)
	for i := range maxCalls {
		share := s.shareOfOutput(ring)
		if i == 0 && share != ring {
			t.Errorf("the first has %d of %d bytes", share, ring)
		}
		c := wrote(fmt.Sprint("running", i), int(share), false, share)
		s.commands = append(s.commands, c)
		running += c.out.memoryHeld()
	}
	if running > keptOutput+maxCalls*leastOutput {
		t.Errorf("%d commands that run keep %d bytes", maxCalls, running)
	}
	if got := s.shareOfOutput(0); got != leastOutput {
		t.Errorf("one more would have %d bytes", got)
	}
}

// TestInputBeforeTheAnswer: a command to which the guest has not said yes takes nothing, and one that has
// ended does not, either.
func TestInputBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		if wrote("a", 1<<16, ended, 0).passInput(channel.FrameStdin, []byte("x")) {
			t.Errorf("it took input; ended %v", ended)
		}
	}
}

// TestTheLastOutputIsKept, though it alone is more than is kept.
func TestTheLastOutputIsKept(t *testing.T) {
	t.Parallel()
	s := &sandbox{keepEnded: 64, commands: []*keptCommand{wrote("a", 1<<16, true, 0), wrote("b", 2*keptOutput, true, 2*keptOutput)}}
	s.pruneCommands()
	if len(s.commands) != 1 || s.commands[0].id != "b" {
		t.Errorf("%d are kept", len(s.commands))
	}
}
