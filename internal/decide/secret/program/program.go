// Package program is a source of secrets: programs of the host that print one, such as a
// password manager's or a keyring's (`secret-tool lookup`).
package program

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// heldOpen is how long what a program left is waited for, if it holds its output open.
const heldOpen = time.Second

// Command is a program of the host.
type Command struct {
	Argv []string // its absolute path and its arguments; no shell reads them

	writable func() []hostpath.Tree // nil: no sandbox may write anywhere
	sums     executable.Sums
}

// Guard has the program not be asked if it lies where a sandbox may write, or could; nil: nowhere.
func (c *Command) Guard(writable func() []hostpath.Tree) { c.writable = writable }

// Fetch implements secret.Source. The program has the daemon's environment (see
// executable.Environment) and no input; it prints one line. Its standard error is not
// kept: it may have the secret. With it end the processes that it left in its process group.
func (c *Command) Fetch(ctx context.Context) (secret.Value, error) {
	if ctx.Err() != nil {
		return secret.Value{}, c.failedError("did not end in time")
	}
	ended, end := context.WithCancel(ctx)
	defer end()
	said := &boundedOutput{over: end}
	opened, writable, err := c.openProgram()
	if err != nil {
		return secret.Value{}, fault.Wrap(fault.ErrUnavailable, err, "the command %s can't be started", c.Argv[0])
	}
	defer opened.Close()
	cmd := opened.Command() // the operator's own; it is ended with its group below
	cmd.Env = executable.Environment(os.Environ(), writable)
	cmd.Stdout, cmd.WaitDelay = said, heldOpen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Dir = string(os.PathSeparator)
	if err := cmd.Start(); err != nil {
		return secret.Value{}, c.failedError("can't be started")
	}
	stop := safego.Until(ended, func() { killGroup(cmd.Process.Pid) })
	exited(cmd.Process.Pid)
	killGroup(cmd.Process.Pid) // what it left; the group's id is taken as long as it is not waited for
	stop()
	err = cmd.Wait()
	var status *exec.ExitError
	switch {
	case said.full:
		return secret.Value{}, c.failedError("prints more than a secret")
	case ctx.Err() != nil:
		return secret.Value{}, c.failedError("did not end in time")
	case errors.As(err, &status):
		return secret.Value{}, c.failedError("failed with " + status.String())
	case err != nil:
		return secret.Value{}, c.failedError("did not end well")
	}
	return secret.Line(said.text.String())
}

// openProgram opens the program, if nobody else could have written what decides what it does. writable are the directories in
// which sandboxes may write, or could.
func (c *Command) openProgram() (program *executable.Program, writable []hostpath.Tree, err error) {
	if c.writable != nil {
		writable = c.writable()
		if err := executable.CheckStrangers(c.Argv, ""); err != nil {
			return nil, nil, err
		}
	}
	if err := executable.CheckPlaces(executable.Places(c.Argv, "", nil), writable); err != nil {
		return nil, nil, err
	}
	program, err = c.sums.Open(c.Argv, "", writable)
	return program, writable, err
}

func (c *Command) failedError(how string) error {
	return fault.New(fault.ErrUnavailable, "the command %s %s", c.Argv[0], how)
}

// exited waits until a process has ended, and leaves it to be waited for.
func exited(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func killGroup(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) } // it may have ended

// boundedOutput keeps what a program prints, as long as it can be a secret.
type boundedOutput struct {
	text strings.Builder
	full bool
	over func() // is called when it is more
}

// Write implements io.Writer.
func (b *boundedOutput) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > secret.MaxValue+2 { // with a line's end
		b.full = true
		b.over()
		return 0, errors.New("more than a secret")
	}
	return b.text.Write(p)
}
