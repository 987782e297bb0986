package guest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// control answers a call about a command that runs. It is no part of the command's stream,
// on which input may wait that the command never reads. The command is named by its id: a
// pid may be another process's by now.
func (a *Agent) control(ctx context.Context, stream *channel.Conn, c *channel.Control) error {
	if c == nil || (c.Signal == nil) == (c.Resize == nil) {
		return replyCall(stream, errors.New("a control call needs a signal or a size, one of both"))
	}
	cmd := a.commands.findCommand(c.Command)
	if cmd != nil && c.Signal != nil && signalNumber(*c.Signal) == unix.SIGKILL {
		return replyCall(stream, cmd.signalCommand(*c.Signal)) // whoever holds up a start would hold up its kill
	}
	if cmd == nil || !cmd.awaitStart(ctx) {
		return stream.WriteJSON(channel.FrameReply, channel.Reply{
			Error: fmt.Sprintf("no command with the id %.80q runs here", c.Command), Code: channel.CodeNotFound,
		})
	}
	if c.Resize != nil {
		return replyCall(stream, cmd.stdio.resize(*c.Resize))
	}
	return replyCall(stream, cmd.signalCommand(*c.Signal))
}

// awaitStart returns when the command's program has been started; false if it never is.
func (c *execCommand) awaitStart(ctx context.Context) bool {
	if c.isRunning() {
		return true
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

// signalNumber returns the number of a signal by its name, with or without SIG; 0: there is none of that name.
func signalNumber(signal channel.Signal) unix.Signal {
	return unix.SignalNum("SIG" + strings.TrimPrefix(signal.Name, "SIG"))
}

// signalCommand sends a signal by its name to the command's group or its whole tree. One that
// kills is done when it returns, and is the only one for which the command need not have started.
func (c *execCommand) signalCommand(signal channel.Signal) error {
	number := signalNumber(signal)
	switch {
	case number == 0:
		return fmt.Errorf("there is no signal %.20q", signal.Name)
	case number == unix.SIGKILL && !c.markKilled():
		return nil // it has no process, and gets none
	case number == unix.SIGKILL && signal.Tree:
		c.killTree()
	case number == unix.SIGKILL:
		c.killGroup()
	case signal.Tree:
		c.treeOf().signalMembers(number)
		return nil
	default:
		c.agent.reaper.signalGroup(c.root, number)
		return nil
	}
	return c.awaitKilled()
}

// markKilled notes that the command was killed: from then on none of its programs is started. It tells whether
// the command has a process, which is to be killed: one whose start is held up has one, too.
func (c *execCommand) markKilled() (hasProcess bool) {
	r := c.agent.reaper
	r.mu.Lock()
	defer r.mu.Unlock()
	c.doomed = true
	return c.agent.commands.rootOf(c).Pid != 0
}

// killTree ends the whole tree, and throws away what waits for its input.
func (c *execCommand) killTree() {
	if t := c.treeOf(); t.root.Pid != 0 {
		c.stuck.Store(int64(t.killMembers()))
	}
	c.dropInput()
}

// killGroup ends the group of the command's first process.
func (c *execCommand) killGroup() {
	r, root := c.agent.reaper, c.agent.commands.rootOf(c)
	r.mu.Lock()
	if p, err := process.Read(root.Pid); err == nil && p.ID == root && !p.Dead {
		c.killed.Store(true)
	}
	r.signalHeld(root, unix.SIGKILL)
	if !c.isRunning() {
		_ = root.Signal(unix.SIGKILL) // it may lead no group yet, or have ended by itself
	}
	r.mu.Unlock()
	c.dropInput()
}

// dropInput throws away what waits for the command's input; before its start there is none.
func (c *execCommand) dropInput() {
	if c.isRunning() {
		c.stdio.input.stopInput()
	}
}

// isRunning tells whether the command's program has been started.
func (c *execCommand) isRunning() bool {
	select {
	case <-c.runs:
		return true
	default:
		return false
	}
}

// awaitKilled returns when the command's first process, which was killed, has ended.
func (c *execCommand) awaitKilled() error {
	limit := time.NewTimer(sweepLimit)
	defer limit.Stop()
	select {
	case <-c.ended:
	case <-c.over: // it was killed before it had become its program
	case <-limit.C:
		return fmt.Errorf("the command's process did not end %s after it was killed", sweepLimit)
	}
	if n := c.stuck.Load(); n > 0 {
		return fmt.Errorf("%d processes of the command could not be killed", n)
	}
	return nil
}
