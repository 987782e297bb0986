// Package command runs tools that are programs of the host.
//
// A program gets its arguments as JSON on its standard input, never on its command line,
// and answers on its standard output. It has the environment that the operator names and
// nothing else, and runs as the operator's user where the daemon is root.
//
// It is the first process of a pid namespace of its own. When it ends, the kernel kills all
// that it has started, wherever that has gone, and nobody can start more. It is killed when
// the call ends, for whatever reason, and when the daemon dies. A daemon that is not root
// needs a user namespace for that, in which programs that change their user, such as sudo, do
// not work; where a host has none, no program is run.
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
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Command is a program of the host.
type Command struct {
	Argv        []string          // the program by its absolute path, and what the operator says to it
	Dir         string            // in which it runs; "" is /
	Environment map[string]string // all of it
	User        *User             // whom it runs as; nil: the daemon's own user
	// Writable are the directories in which sandboxes may write now: no program that lies there
	// is run. nil: there are none.
	Writable func() []hostpath.Tree

	sums executable.Sums
}

// User is a user of the host.
type User struct{ UID, GID uint32 }

var _ tool.Runner = (*Command)(nil)

// The variables that a program has beside the operator's.
const (
	runVariable     = "COFFERDAM_RUN"
	sandboxVariable = "COFFERDAM_SANDBOX"
)

// held is how long somebody beyond the namespace may keep the program's output open.
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

// Definition implements tool.Runner. The values of its variables are in it: they may be what
// the tool works on, and only a digest of all of it is told. So are the bytes of the program, of
// the interpreters of a script, and of the files that the operator's arguments name.
func (c *Command) Definition() string {
	program, err := c.openProgram()
	if err != nil {
		return c.definition(err.Error())
	}
	defer program.Close()
	return c.definition(program.Digest)
}

// openProgram opens the program.
func (c *Command) openProgram() (*executable.Program, error) {
	var writable []hostpath.Tree
	if c.Writable != nil {
		writable = c.Writable()
		if c.User == nil {
			if err := executable.CheckStrangers(c.Argv, c.Dir); err != nil {
				return nil, err
			}
		}
	}
	if err := executable.CheckPlaces(executable.Places(c.Argv, c.Dir, c.Environment), writable); err != nil {
		return nil, err
	}
	return c.sums.Open(c.Argv, c.Dir, writable)
}

// definition is what it runs, if these are its bytes.
func (c *Command) definition(digest string) string {
	as := ""
	if c.User != nil {
		as = fmt.Sprintf("%d:%d", c.User.UID, c.User.GID)
	}
	var variables []string
	for key, value := range c.Environment {
		variables = append(variables, key+"="+value)
	}
	slices.Sort(variables)
	return fmt.Sprintf("command %q (%s) in %q with %q as %s", c.Argv, digest, c.Dir, variables, as)
}

// Run implements tool.Runner. A program that ends with a code other than 0 has failed; what it
// wrote to its standard error is for the operator.
func (c *Command) Run(ctx context.Context, call tool.Call) ([]byte, error) {
	program, err := c.openProgram()
	if err != nil {
		return nil, &tool.Failure{Sentence: "the tool's program can't be started", Cause: err}
	}
	defer program.Close()
	if call.Defined != "" && c.definition(program.Digest) != call.Defined {
		return nil, tool.Changed()
	}
	// The kernel kills the program when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out := &boundedOutput{most: call.MaxOutput, over: make(chan struct{})}
	complaint := &tail{most: 4 << 10}
	cmd := c.makeCommand(program, call)
	cmd.Stdout, cmd.Stderr = out, complaint
	if err := cmd.Start(); err != nil {
		return nil, &tool.Failure{Sentence: "the tool's program can't be started", Cause: err}
	}
	exited := make(chan struct{})
	safego.Go(func() {
		defer close(exited)
		awaitExit(cmd.Process.Pid)
	})
	select {
	case <-exited:
	case <-out.over:
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill() // it is not reaped yet, so the number is still its own
	err = cmd.Wait()       // by then nothing of its namespace runs
	switch {
	case out.isOver():
		return nil, tool.TooMuch(call.MaxOutput)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay): // it ended well; whom it gave its output to holds that
		return out.allBytes(), nil
	case err != nil:
		return nil, failedError(err, complaint)
	}
	return out.allBytes(), nil
}

// makeCommand makes the command of the operator's program; Run ends it, whatever the reason.
func (c *Command) makeCommand(program *executable.Program, call tool.Call) *exec.Cmd {
	cmd := program.Command()
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
	cmd.SysProcAttr = c.attributes()
	return cmd
}

// attributes have the program begin a pid namespace. In it the parent's number is 0, so the
// check that comes with Pdeathsig takes the parent for dead; the signal that it then sends
// is one that the first process of a namespace does not get from within.
func (c *Command) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: unix.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		return a
	}
	if c.User != nil {
		a.Credential = &syscall.Credential{Uid: c.User.UID, Gid: c.User.GID}
	}
	return a
}

// awaitExit returns when a child has ended, and leaves it to be reaped.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// failedError says how a program ended.
func failedError(err error, complaint *tail) error {
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
	if said := complaint.textOf(); said != "" {
		err = fmt.Errorf("%w; it said: %s", err, text.Shorten(said, 2_000))
	}
	return &tool.Failure{Sentence: sentence, Exit: code, Cause: err}
}
