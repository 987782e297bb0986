// Package command runs tools that are programs of the host.
//
// A program gets its arguments as JSON on its standard input, never on its command line,
// and answers on its standard output. It runs in a process group of its own, with the
// environment that the operator names and nothing else, and as the operator's user where
// the daemon is root. When the call ends, for whatever reason, the whole group is killed. When
// the daemon dies, the program is, and not what it has started. Neither is a process that
// leaves the group, as daemons do: a tool that starts one is asked to end it.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/tool"
)

// Command is a program of the host.
type Command struct {
	Argv        []string          // the program by its absolute path, and what the operator says to it
	Dir         string            // in which it runs; "" is /
	Environment map[string]string // all of it
	User        *User             // whom it runs as; nil: the daemon's own user
}

// User is a user of the host.
type User struct{ UID, GID uint32 }

var _ tool.Runner = (*Command)(nil)

// The variables that a program has beside the operator's.
const (
	runVariable     = "COFFERDAM_RUN"
	sandboxVariable = "COFFERDAM_SANDBOX"
)

// held is how long a process that left the group may keep the program's output open.
const held = 250 * time.Millisecond

// Check says what no program can be.
func (c *Command) Check() error {
	if len(c.Argv) == 0 || !filepath.IsAbs(c.Argv[0]) {
		return errors.New("the program is named by its absolute path")
	}
	for _, text := range append([]string{c.Dir}, c.Argv...) {
		if strings.ContainsRune(text, 0) {
			return errors.New("a text has a zero byte in it")
		}
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		return fmt.Errorf("the directory %q is no absolute path", c.Dir)
	}
	for key, value := range c.Environment {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%q can't be a variable", key)
		}
	}
	if c.User == nil && os.Geteuid() == 0 {
		return errors.New("the daemon is root, so it has to be said as which user the program runs")
	}
	return nil
}

// Run implements tool.Runner. A program that ends with a code other than 0 has failed; what it
// wrote to its standard error is for the operator.
func (c *Command) Run(ctx context.Context, call tool.Call) ([]byte, error) {
	// The kernel kills the program when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := &output{most: call.MaxOutput, over: make(chan struct{})}
	complaint := &tail{most: 4 << 10}
	cmd := c.command(call)
	cmd.Stdout, cmd.Stderr = out, complaint
	if err := cmd.Start(); err != nil {
		return nil, &tool.Failure{Sentence: "the tool's program can't be started", Cause: err}
	}
	exited := make(chan struct{})
	errand.Go(func() {
		defer close(exited)
		left(cmd.Process.Pid)
	})
	select {
	case <-exited:
	case <-out.over:
	case <-ctx.Done():
	}
	// The program is not reaped yet, so the group's number is still its own.
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	err := cmd.Wait()
	switch {
	case out.isOver():
		return nil, tool.TooMuch(call.MaxOutput)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay): // it ended well; something that it left behind holds its output
		return out.bytes(), nil
	case err != nil:
		return nil, failed(err, complaint)
	}
	return out.bytes(), nil
}

func (c *Command) command(call tool.Call) *exec.Cmd {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...) //nolint:noctx // the operator's program; its group is killed, not it alone
	cmd.Stdin = bytes.NewReader([]byte(call.Arguments))
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = "/"
	}
	cmd.Env = []string{runVariable + "=" + call.Run, sandboxVariable + "=" + call.Sandbox}
	for key, value := range c.Environment {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	cmd.WaitDelay = held
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.User != nil && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.User.UID, Gid: c.User.GID}
	}
	return cmd
}

// left returns when a child has ended, and leaves it to be reaped.
func left(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// failed says how a program ended.
func failed(err error, complaint *tail) error {
	sentence, code := "the tool's program failed", (*int)(nil)
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			sentence = fmt.Sprintf("the tool's program was ended by the signal %q", unix.SignalName(status.Signal()))
		} else {
			exit := ended.ExitCode()
			code = &exit
			sentence = fmt.Sprintf("the tool failed: its program ended with the code %d", ended.ExitCode())
		}
	}
	if said := complaint.text(); said != "" {
		err = fmt.Errorf("%w; it said: %s", err, excerpt.Of(said, 2_000))
	}
	return &tool.Failure{Sentence: sentence, Exit: code, Cause: err}
}
