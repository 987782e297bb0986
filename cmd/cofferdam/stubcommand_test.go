package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// stubCommand is a process whose output is kept from its start.
type stubCommand struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	tty   *os.File // nil: none

	mu    sync.Mutex // guards what follows
	more  *sync.Cond
	kept  []stubOutput
	exit  *channel.Exit
	timed bool
}

type stubOutput struct {
	kind channel.FrameType
	data []byte
}

func startStub(req api.StartCommand) *stubCommand {
	c := &stubCommand{cmd: exec.Command(req.Argv[0], req.Argv[1:]...)}
	c.more = sync.NewCond(&c.mu)
	if req.Argv[0] == "eat-all-memory" {
		c.end(channel.Exit{Code: 137, Error: "the sandbox ended"})
		return c
	}
	if req.Argv[0] == "lose-to-memory" {
		c.end(channel.Exit{Code: 137, Signal: "KILL", Claimed: true})
		return c
	}
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range req.Env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	outputs, err := c.open(req)
	if err != nil {
		c.end(channel.Exit{Code: 127, Error: req.Argv[0] + ": not found in the sandbox"})
		return c
	}
	var drained sync.WaitGroup
	for kind, r := range outputs {
		drained.Go(func() { c.keep(kind, r) })
	}
	if req.TimeoutMS > 0 {
		time.AfterFunc(time.Duration(req.TimeoutMS)*time.Millisecond, func() {
			c.mu.Lock()
			c.timed = true
			c.mu.Unlock()
			c.kill()
		})
	}
	go func() {
		drained.Wait()
		_ = c.cmd.Wait()
		c.end(exitOf(c.cmd.ProcessState))
	}()
	return c
}

// open starts the process, with a terminal or with pipes.
func (c *stubCommand) open(req api.StartCommand) (map[channel.FrameType]io.Reader, error) {
	if req.Rows > 0 && req.Cols > 0 {
		tty, err := pty.StartWithSize(c.cmd, &pty.Winsize{Rows: req.Rows, Cols: req.Cols})
		if err != nil {
			return nil, err
		}
		c.tty, c.stdin = tty, tty
		return map[channel.FrameType]io.Reader{channel.FrameStdout: tty}, nil
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stdout, stderr io.Reader
	var failures [3]error
	stdout, failures[0] = c.cmd.StdoutPipe()
	stderr, failures[1] = c.cmd.StderrPipe()
	if req.Stdin {
		c.stdin, failures[2] = c.cmd.StdinPipe()
	}
	if err := errors.Join(failures[:]...); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	return map[channel.FrameType]io.Reader{channel.FrameStdout: stdout, channel.FrameStderr: stderr}, nil
}

func (c *stubCommand) keep(kind channel.FrameType, r io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			c.mu.Lock()
			c.kept = append(c.kept, stubOutput{kind, append([]byte(nil), buf[:n]...)})
			c.more.Broadcast()
			c.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

func (c *stubCommand) end(exit channel.Exit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	exit.TimedOut = c.timed
	c.exit = &exit
	c.more.Broadcast()
}

func exitOf(state *os.ProcessState) channel.Exit {
	status, _ := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return channel.Exit{Code: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())[3:]}
	}
	return channel.Exit{Code: status.ExitStatus()}
}

func (c *stubCommand) kill() {
	if c.cmd.Process != nil {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// tell writes the output from offset on and then the exit, as far as sent
// agrees.
func (c *stubCommand) tell(w io.Writer, offset int64, sent func(int) bool) {
	frames := channel.NewWriter(w)
	total := 0
	for i := 0; ; i++ {
		c.mu.Lock()
		for i >= len(c.kept) && c.exit == nil {
			c.more.Wait()
		}
		if i >= len(c.kept) {
			exit := c.exit
			c.mu.Unlock()
			_ = frames.WriteJSON(channel.FrameExit, exit)
			return
		}
		out := c.kept[i]
		c.mu.Unlock()
		skip := min(offset, int64(len(out.data)))
		offset -= skip
		if data := out.data[skip:]; len(data) > 0 {
			if frames.WriteFrame(out.kind, data) != nil {
				return
			}
			if total += len(data); !sent(total) {
				return
			}
		}
	}
}

// listen does what the client's frames say.
func (c *stubCommand) listen(r io.Reader) {
	frames := channel.NewReader(r)
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			return
		}
		switch kind { //nolint:exhaustive // a client sends no others
		case channel.FrameStdin:
			switch {
			case c.stdin == nil:
			case len(payload) == 0:
				_ = c.stdin.Close()
			default:
				_, _ = c.stdin.Write(payload)
			}
		case channel.FrameResize:
			var size channel.WindowSize
			if json.Unmarshal(payload, &size) == nil && c.tty != nil {
				_ = pty.Setsize(c.tty, &pty.Winsize{Rows: size.Rows, Cols: size.Cols})
			}
		case channel.FrameSignal:
			var sig channel.Signal
			if json.Unmarshal(payload, &sig) == nil && c.cmd.Process != nil {
				_ = syscall.Kill(-c.cmd.Process.Pid, unix.SignalNum("SIG"+sig.Name))
			}
		}
	}
}

// written is how many bytes of output there are so far.
func (c *stubCommand) written() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kept {
		n += int64(len(k.data))
	}
	return n
}
