package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// execCommand is one exec of the host.
type execCommand struct {
	agent  *Agent
	exec   *channel.Exec
	number uint64 // told by no other command of this agent; set when its id is reserved
	out    *outlet
	user   channel.User
	env    []string
	dir    string
	stdio  *stdio // set before runs is closed

	root     process.ID    // guarded by commands.mu; zero until it is forked
	runs     chan struct{} // closed when it has been started
	ended    chan struct{} // closed when its first process has ended
	over     chan struct{} // closed when the host has its exit, or never will
	done     <-chan unix.WaitStatus
	doomed   bool // guarded by reaper.mu: it was killed, and gets no process any more
	timedOut atomic.Bool
	killed   atomic.Bool  // the agent killed the first process while it lived
	stuck    atomic.Int64 // processes that SIGKILL did not end
}

// answerExec answers a call for a command: a reply, then the command's frames. The
// command goes on when the session is started anew.
func (a *Agent) answerExec(ctx context.Context, stream *channel.Conn, exec *channel.Exec) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, err := a.prepareCommand(ctx, stream, exec)
	if err != nil {
		return replyCall(stream, err)
	}
	defer close(cmd.over)
	if err := replyCall(stream, nil); err != nil {
		a.commands.releaseID(exec.ID)
		return err
	}
	exit := cmd.runToEnd(ctx, stream)
	return cmd.tellExit(exit)
}

// runToEnd runs the command to its end.
func (c *execCommand) runToEnd(ctx context.Context, stream *channel.Conn) channel.Exit {
	if failed := c.startProgram(); failed != nil {
		return channel.Exit{Code: failed.code, Signal: failed.signal, Error: failed.sentence}
	}
	close(c.runs)
	return c.carryFrames(ctx, stream)
}

// tellExit gives the host the exit, on whatever stream the command has or gets.
func (c *execCommand) tellExit(exit channel.Exit) error {
	running := c.agent.commands
	for {
		stream, err := c.out.awaitStream()
		running.releaseID(c.exec.ID) // before the host learns of the end and may use the id again
		if err != nil {
			return err
		}
		err = stream.WriteJSON(channel.FrameExit, exit)
		if !errors.Is(err, channel.ErrReset) {
			return err
		}
		c.out.loseStream(stream)
		if err := running.reserve(c.exec.ID, c); err != nil {
			return err
		}
	}
}

// prepareCommand checks what does not depend on the sandbox's files.
func (a *Agent) prepareCommand(ctx context.Context, stream *channel.Conn, exec *channel.Exec) (*execCommand, error) {
	if exec == nil || exec.ID == "" || len(exec.Argv) == 0 {
		return nil, errors.New("an exec call needs an id and an argv")
	}
	if strings.ContainsRune(exec.ID, 0) {
		return nil, errors.New("a command's id must not have a zero byte")
	}
	identity, err := a.currentIdentity()
	if err != nil {
		return nil, err
	}
	user, err := identity.resolveUser(exec.User)
	if err != nil {
		return nil, err
	}
	env, err := commandEnv(user, identity.env, exec)
	if err != nil {
		return nil, err
	}
	cmd := &execCommand{
		agent: a, exec: exec, out: newOutlet(ctx, stream, a.clock), user: user, env: env, dir: exec.Dir,
		runs: make(chan struct{}), ended: make(chan struct{}), over: make(chan struct{}),
	}
	if cmd.dir == "" {
		cmd.dir = user.Home
	}
	if err := a.commands.reserve(exec.ID, cmd); err != nil {
		return nil, err
	}
	return cmd, nil
}

// startProgram runs the program with its own session, as its user, without
// capabilities and with nothing but its three descriptors.
func (c *execCommand) startProgram() *startError {
	dir, failed := workingDirectory(c.user, c.dir)
	if failed != nil {
		return failed
	}
	c.dir = dir
	stdio, err := newStdio(c.exec, c.user)
	if err != nil {
		return notExecutable("the command's input and output could not be made: %v", err)
	}
	defer stdio.closeChild()
	p := program{
		argv: c.exec.Argv, env: c.env, dir: c.dir, files: stdio.child, terminal: c.exec.PTY != nil,
		uid: c.user.UID, gid: c.user.GID, groups: isRoot(), // only tests run the agent as somebody else
		processes: uint64(c.agent.each.Load()), number: c.number,
	}
	failed = launch(c.exec.Argv[0], c.searchPath(), c.dir, func(file string) error {
		p.file = file
		return c.forkProgram(p)
	})
	if failed != nil {
		stdio.closePipes()
		return failed
	}
	c.stdio = stdio
	return nil
}

// forkProgram starts a program and makes its process known before it can be collected, or taken for
// an orphan.
func (c *execCommand) forkProgram(p program) error {
	var told *os.File
	var root process.ID
	done, err := c.agent.reaper.startChild(func() (process.ID, error) {
		if c.doomed {
			return process.ID{}, errKilled
		}
		pid, reading, err := p.beginChild()
		if err != nil {
			return process.ID{}, err
		}
		told = reading
		if root, err = process.Of(pid); err != nil { // nothing could be told of its tree
			_ = unix.Kill(pid, unix.SIGKILL) // not collected yet: the number is its own
			if told != nil {
				err = errors.Join(err, told.Close())
			}
			return process.ID{}, fmt.Errorf("look at the process that was started: %w", err)
		}
		c.agent.commands.started(c, root)
		return root, nil
	})
	if err != nil {
		return err
	}
	c.done = done
	if told == nil {
		return nil
	}
	defer told.Close()
	if err := c.agent.reaper.awaitChild(root, told, c.agent.clock, startBound); err != nil {
		c.agent.commands.started(c, process.ID{})
		return err
	}
	return nil
}

// searchPath returns the PATH of the command's own environment.
func (c *execCommand) searchPath() string {
	for _, variable := range c.env {
		if path, ok := strings.CutPrefix(variable, "PATH="); ok {
			return path
		}
	}
	return ""
}

// carryFrames carries the command's frames until it has ended. stream is the one that it
// began with.
func (c *execCommand) carryFrames(ctx context.Context, stream *channel.Conn) channel.Exit {
	timing, stopTimer := context.WithCancel(ctx)
	defer stopTimer()
	if err := c.out.announce(channel.Started{PID: c.root.Pid}); err != nil {
		c.killTree()
	}
	var helpers, pumps sync.WaitGroup
	for _, out := range c.stdio.outputs {
		pumps.Go(func() {
			if err := pumpOutput(out.file, c.out, out.kind); err != nil {
				c.killTree() // nobody can get the output any more
			}
		})
	}
	helpers.Go(c.stdio.input.writeInput)
	helpers.Go(func() { c.control(stream) })
	helpers.Go(func() { c.limitTime(timing) })

	status := c.waitFirst(ctx)
	close(c.ended)
	stopTimer() // only a kill that has begun goes on
	for _, out := range c.stdio.outputs {
		curtail(out.file)
	}
	pumps.Wait()
	c.stdio.input.stopInput()
	c.stdio.closePipes()
	_ = stream.Raw().SetReadDeadline(time.Now()) // ends control
	helpers.Wait()
	return c.exitOf(status)
}

// waitFirst returns the status of the first process. When the agent ends it kills.
func (c *execCommand) waitFirst(ctx context.Context) unix.WaitStatus {
	select {
	case status := <-c.done:
		return status
	case <-ctx.Done():
		c.killTree()
		return <-c.done
	}
}

// exitOf says how the command ended.
func (c *execCommand) exitOf(status unix.WaitStatus) channel.Exit {
	exit := channel.Exit{Code: status.ExitStatus(), TimedOut: c.timedOut.Load()}
	if status.Signaled() {
		exit.Code = 128 + int(status.Signal())
		exit.Signal = strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG")
	} else if c.killed.Load() { // a shell whose child died of it first may have ended by itself meanwhile
		exit.Code, exit.Signal = 128+int(unix.SIGKILL), "KILL"
	}
	if n := c.stuck.Load(); n > 0 {
		exit.Error = fmt.Sprintf("%d processes of the command could not be killed", n)
	}
	return exit
}

// control does what the host's frames ask, until the stream ends. A reset is no
// end of the input.
func (c *execCommand) control(stream *channel.Conn) {
	for {
		kind, payload, err := stream.ReadFrame()
		if errors.Is(err, channel.ErrReset) {
			c.out.loseStream(stream)
			return
		}
		if err != nil {
			c.stdio.input.pushData(nil)
			return
		}
		if err := c.obeyFrame(kind, payload); err != nil {
			c.agent.log.Warn("a frame of the host could not be obeyed", "command", c.exec.ID, "error", err)
		}
	}
}

func (c *execCommand) obeyFrame(kind channel.FrameType, payload []byte) error {
	switch kind {
	case channel.FrameStdin:
		c.stdio.input.pushData(payload)
		return nil
	case channel.FrameResize:
		var size channel.WindowSize
		if err := channel.DecodeJSON(kind, payload, &size); err != nil {
			return err
		}
		return c.stdio.resize(size)
	case channel.FrameSignal:
		var signal channel.Signal
		if err := channel.DecodeJSON(kind, payload, &signal); err != nil {
			return err
		}
		return c.signalCommand(signal)
	default:
		return fmt.Errorf("a frame of type %d does not belong to a command", kind)
	}
}

// limitTime ends the tree when the command's time is over: time in which the
// sandbox ran and the host did not stop the clock.
func (c *execCommand) limitTime(ctx context.Context) {
	if c.exec.Timeout <= 0 {
		return
	}
	if c.agent.paid.waitCounted(ctx, time.Duration(c.exec.Timeout)*time.Millisecond) != nil {
		return
	}
	c.timedOut.Store(true)
	if c.exec.Grace > 0 {
		c.treeOf().signalMembers(unix.SIGTERM)
		c.treeOf().waitGone(time.Duration(c.exec.Grace) * time.Millisecond)
	}
	c.killTree()
}

func (c *execCommand) treeOf() *processTree {
	t := c.agent.commands.describeTree(c, os.Getpid(), c.agent.reaper)
	t.clock, t.killing = c.agent.clock, func() { c.killed.Store(true) }
	return t
}
