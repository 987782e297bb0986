package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/process"
)

// control answers a call about a command that runs. It is no part of the command's stream,
// on which input may wait that the command never reads. The command is named by its id: a
// pid may be another process's by now.
func (a *Agent) control(ctx context.Context, stream *channel.Conn, c *channel.Control) error {
	if c == nil || (c.Signal == nil) == (c.Resize == nil) {
		return reply(stream, errors.New("a control call needs a signal or a size, one of both"))
	}
	cmd := a.commands.find(c.Command)
	if cmd == nil || !cmd.awaitStart(ctx) {
		return stream.WriteJSON(channel.FrameReply, channel.Reply{
			Error: fmt.Sprintf("no command with the id %.80q runs here", c.Command), Code: channel.CodeNotFound,
		})
	}
	if c.Resize != nil {
		return reply(stream, cmd.stdio.resize(*c.Resize))
	}
	return reply(stream, cmd.signal(*c.Signal))
}

// awaitStart returns when the command's program has been started; false if it never is.
func (c *command) awaitStart(ctx context.Context) bool {
	select {
	case <-c.runs:
		return true
	default:
	}
	select {
	case <-c.runs:
		return true
	case <-c.over:
		return false
	case <-ctx.Done():
		return false
	}
}

// signal sends a signal by its name to the command's group or its whole tree. One that
// kills is done when it returns.
func (c *command) signal(signal channel.Signal) error {
	number := unix.SignalNum("SIG" + strings.TrimPrefix(signal.Name, "SIG"))
	switch {
	case number == 0:
		return fmt.Errorf("there is no signal %.20q", signal.Name)
	case number == unix.SIGKILL && signal.Tree:
		c.kill()
	case number == unix.SIGKILL:
		c.killGroup()
	case signal.Tree:
		c.tree().signal(number)
		return nil
	default:
		c.agent.reaper.signal(c.root, number)
		return nil
	}
	return c.awaitKilled()
}

// kill ends the whole tree, and throws away what waits for its input.
func (c *command) kill() {
	c.stuck.Store(int64(c.tree().kill()))
	c.stdio.input.stop()
}

// killGroup ends the group of the command's first process.
func (c *command) killGroup() {
	r := c.agent.reaper
	r.mu.Lock()
	if p, err := process.Read(c.root.Pid); err == nil && p.ID == c.root && !p.Dead {
		c.killed.Store(true)
	}
	r.signalHeld(c.root, unix.SIGKILL)
	r.mu.Unlock()
	c.stdio.input.stop()
}

// awaitKilled returns when the command's first process, which was killed, has ended.
func (c *command) awaitKilled() error {
	limit := time.NewTimer(sweepLimit)
	defer limit.Stop()
	select {
	case <-c.ended:
	case <-limit.C:
		return fmt.Errorf("the command's process did not end %s after it was killed", sweepLimit)
	}
	if n := c.stuck.Load(); n > 0 {
		return fmt.Errorf("%d processes of the command could not be killed", n)
	}
	return nil
}
