package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Commands are the commands of one pretended sandbox: real processes of the
// machine that the test runs on, in a directory of the test's, as the test's user.
// Safe for concurrent use.
type Commands struct {
	Files *Files // what a working directory means
	Env   []string

	mu  sync.Mutex // guards what follows
	all []*boxCommand
}

// boxCommand is a process and all of its output, which is kept.
type boxCommand struct {
	view  keeper.Command
	user  string
	input io.WriteCloser
	tty   *os.File
	group int

	mu      sync.Mutex // guards what follows
	frames  []recorded
	exit    *channel.Exit
	ended   time.Time
	changed chan struct{} // closed and replaced with each frame
}

type recorded struct {
	kind    channel.FrameType
	payload []byte
	at      time.Time
}

// Start starts a process. A directory that is not there is told as the exit, as a
// guest does.
func (c *Commands) Start(want sandbox.Command) (keeper.Command, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := &boxCommand{changed: make(chan struct{}), user: want.User}
	k.view = keeper.Command{ID: "cmd" + strconv.Itoa(len(c.all)+1), Argv: want.Argv, Started: time.Now(), Terminal: want.PTY != nil}
	c.all = append(c.all, k)
	process := exec.Command(want.Argv[0], want.Argv[1:]...) //nolint:noctx // it lives as long as the sandbox
	process.Dir = c.Files.hostPath(want.Dir)
	process.Env = slices.Clone(c.Env)
	for name, value := range want.Env {
		process.Env = append(process.Env, name+"="+value)
	}
	if _, err := os.Stat(process.Dir); err != nil {
		k.endCommand(channel.Exit{Code: 126, Error: "the working directory " + want.Dir + " does not exist"})
		return k.view, nil
	}
	wait, err := k.startProcess(process, want)
	if err != nil {
		k.endCommand(channel.Exit{Code: 127, Error: want.Argv[0] + " can't be started: " + err.Error()})
		return k.view, nil
	}
	k.view.PID, k.group = process.Process.Pid, process.Process.Pid
	k.recordFrame(channel.FrameStarted, marshal(channel.Started{PID: k.view.PID}))
	go k.followProcess(process, wait, want.Timeout)
	return k.view, nil
}

// startProcess returns a function that returns when all output was taken.
func (k *boxCommand) startProcess(process *exec.Cmd, want sandbox.Command) (wait func(), err error) {
	if want.PTY != nil {
		k.tty, err = pty.StartWithSize(process, &pty.Winsize{Rows: want.PTY.Rows, Cols: want.PTY.Cols})
		k.input = k.tty
		return func() { k.pumpOutput(channel.FrameStdout, k.tty) }, err
	}
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if want.Stdin {
		if k.input, err = process.StdinPipe(); err != nil {
			return nil, err
		}
	}
	return func() {
		var pumps sync.WaitGroup
		pumps.Go(func() { k.pumpOutput(channel.FrameStdout, stdout) })
		pumps.Go(func() { k.pumpOutput(channel.FrameStderr, stderr) })
		pumps.Wait()
	}, process.Start()
}

func (k *boxCommand) pumpOutput(kind channel.FrameType, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			k.recordFrame(kind, slices.Clone(buf[:n]))
		}
		if err != nil {
			return
		}
	}
}

func (k *boxCommand) followProcess(process *exec.Cmd, wait func(), timeout time.Duration) {
	var timedOut bool
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() {
			k.mu.Lock()
			timedOut = true
			k.mu.Unlock()
			_ = syscall.Kill(-k.group, syscall.SIGKILL)
		})
		defer timer.Stop()
	}
	wait()
	_ = process.Wait() // its state tells
	status, _ := process.ProcessState.Sys().(syscall.WaitStatus)
	k.mu.Lock()
	exit := channel.Exit{Code: status.ExitStatus(), TimedOut: timedOut}
	k.mu.Unlock()
	if status.Signaled() {
		exit.Code = 128 + int(status.Signal())
		exit.Signal = unix.SignalName(status.Signal())[len("SIG"):]
	}
	k.endCommand(exit)
}

func (k *boxCommand) recordFrame(kind channel.FrameType, payload []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.frames = append(k.frames, recorded{kind, payload, time.Now()})
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *boxCommand) endCommand(exit channel.Exit) {
	k.mu.Lock()
	if k.exit != nil {
		k.mu.Unlock()
		return
	}
	k.exit, k.ended = &exit, time.Now()
	k.mu.Unlock()
	k.recordFrame(channel.FrameExit, marshal(exit))
}

// List returns all commands, those that have ended included.
func (c *Commands) List() []keeper.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	var views []keeper.Command
	for _, k := range c.all {
		k.mu.Lock()
		view := k.view
		view.Exit, view.Ended = k.exit, k.ended
		k.mu.Unlock()
		views = append(views, view)
	}
	return views
}

func (c *Commands) findCommand(id string) (*boxCommand, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.all {
		if k.view.ID == id {
			return k, nil
		}
	}
	return nil, fault.New(fault.ErrNotFound, "there is no command %q", id)
}

// Attach plays a command's frames: all of them, or from now on.
func (c *Commands) Attach(id string, offset int64) (net.Conn, error) {
	k, err := c.findCommand(id)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	from := k.placeToPlay(offset == keeper.FromNow) // before the caller goes on, as the keeper does
	go func() {
		defer far.Close()
		k.playFrames(channel.NewConn(far), from)
	}()
	return near, nil
}

// placeToPlay is the number of the first frame that is to be played.
func (k *boxCommand) placeToPlay(fromNow bool) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case !fromNow:
		return 0
	case k.exit != nil:
		return len(k.frames) - 1 // how it ended is for all
	}
	return len(k.frames)
}

// playFrames ends when the other side goes away or has got the exit.
func (k *boxCommand) playFrames(to *channel.Conn, next int) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			kind, payload, err := to.ReadFrame()
			if err != nil {
				return
			}
			_ = k.takeFrame(kind, payload) // a command that has ended takes nothing
		}
	}()
	if next > 0 && k.view.PID != 0 && to.WriteFrame(channel.FrameStarted, marshal(channel.Started{PID: k.view.PID})) != nil {
		return
	}
	for {
		k.mu.Lock()
		pending, changed := k.frames[min(next, len(k.frames)):], k.changed
		k.mu.Unlock()
		for _, f := range pending {
			if to.WriteFrame(f.kind, f.payload) != nil || f.kind == channel.FrameExit {
				return
			}
		}
		next += len(pending)
		select {
		case <-changed:
		case <-gone:
			return
		}
	}
}

// Written tells of each frame of output as a passage.
func (c *Commands) Written(id string) (keeper.Output, error) {
	k, err := c.findCommand(id)
	if err != nil {
		return keeper.Output{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	out := keeper.Output{User: k.user}
	for _, f := range k.frames {
		switch f.kind { //nolint:exhaustive // the others are no output
		case channel.FrameStdout:
			out.Passages = append(out.Passages, keeper.Passage{At: f.at, Stdout: f.payload})
		case channel.FrameStderr:
			out.Passages = append(out.Passages, keeper.Passage{At: f.at, Stderr: f.payload})
		}
	}
	return out, nil
}

// EndWith has all commands that run end like this, as the host tells it.
func (c *Commands) EndWith(exit channel.Exit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.all {
		k.mu.Lock()
		ended := k.exit != nil // its number may be another's now
		k.mu.Unlock()
		k.endCommand(exit)
		if k.group != 0 && !ended {
			_ = syscall.Kill(-k.group, syscall.SIGKILL)
		}
	}
}

// Send passes a frame to a process.
func (c *Commands) Send(_ context.Context, id string, kind channel.FrameType, payload []byte) error {
	k, err := c.findCommand(id)
	if err != nil {
		return err
	}
	k.mu.Lock()
	ended := k.exit != nil
	k.mu.Unlock()
	if !ended {
		err = k.takeFrame(kind, payload)
	}
	if ended || errors.Is(err, syscall.ESRCH) { // the process may be gone before its exit is told
		return fault.New(fault.ErrConflict, "the command %s has ended", id)
	}
	return err
}

// takeFrame passes a frame to the process.
func (k *boxCommand) takeFrame(kind channel.FrameType, payload []byte) error {
	switch kind {
	case channel.FrameStdin:
		return k.takeInput(payload)
	case channel.FrameResize:
		var size channel.WindowSize
		if err := json.Unmarshal(payload, &size); err != nil {
			return err
		}
		return pty.Setsize(k.tty, &pty.Winsize{Rows: size.Rows, Cols: size.Cols})
	case channel.FrameSignal:
		var signal channel.Signal
		if err := json.Unmarshal(payload, &signal); err != nil {
			return err
		}
		return syscall.Kill(-k.group, unix.SignalNum("SIG"+signal.Name))
	default:
		return errors.New("not a frame for a command")
	}
}

func (k *boxCommand) takeInput(payload []byte) error {
	if k.input == nil {
		return nil
	}
	if len(payload) == 0 {
		_ = k.input.Close() // as below
		return nil
	}
	_, _ = k.input.Write(payload) // as a guest does: input that nobody takes any more is thrown away
	return nil
}

// Kill ends all commands, as the end of their sandbox does.
func (c *Commands) Kill() { c.EndWith(channel.Exit{Code: 137, Error: "the sandbox ended"}) }

func marshal(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the package's own types
	}
	return data
}
