package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// Command asks for a process in a sandbox.
type Command struct {
	Argv    []string
	Judged  string // what the policy's rules see as the command; "": argv joined by spaces
	Env     map[string]string
	Dir     string
	User    string
	Stdin   bool
	PTY     *channel.WindowSize
	Timeout time.Duration // 0: the policy's; it can only shorten that
	// CapBytes per output stream; 0: none.
	CapBytes int64
}

const (
	ringBytes    = 4 << 20          // kept of a command's output for a late client
	timeoutGrace = 3 * time.Second  // SIGTERM to SIGKILL
	guestGrace   = 10 * time.Second // how long past its timeout the guest may take to say so
	maxArgv      = 1 << 20          // bytes
)

// Start starts a command: judged and recorded first. A refusal is
// fault.ErrForbidden with the rule's reason.
func (m *Manager) Start(ctx context.Context, id string, c Command) (started keeper.Command, err error) {
	ctx, done := m.observe(ctx, VerbExec, id)
	defer func() { done(nil, started.ID, err) }()
	s, err := m.Get(id)
	if err != nil {
		return keeper.Command{}, err
	}
	if err := checkCommand(c); err != nil {
		return keeper.Command{}, err
	}
	if state, _ := s.State(); !state.Usable() {
		return keeper.Command{}, fault.New(fault.ErrConflict, "the sandbox %s is %s", id, state)
	}
	cmd := &command{id: newID("cmd"), settled: make(chan struct{}), argv: c.Argv, env: c.Env, dir: orDir(c.Dir, s.info.Workdir)}
	answer, err := m.cfg.Door.CommandAs(ctx, id, cmd.id, c.Argv, c.Judged)
	if err != nil {
		return keeper.Command{}, err
	}
	if !answer.Decision.Allowed() {
		return keeper.Command{}, fault.New(fault.ErrForbidden, "%s (rule %s, request %s)", answer.Decision.Reason, answer.Decision.Rule, answer.RequestID)
	}
	c.User = s.userOf(c.User)
	timeout := shorter(c.Timeout, s.policy.Resources().Timeout)
	exec := channel.Exec{
		ID: cmd.id, Argv: c.Argv, Env: c.Env, Dir: orDir(c.Dir, s.info.Workdir), User: c.User,
		PTY: c.PTY, Stdin: c.Stdin, Timeout: timeout.Milliseconds(), Grace: timeoutGrace.Milliseconds(),
	}
	faultpoint.Hit(faultpoint.ExecJudged)
	s.inventory.AsRoot(c.User)
	s.hold(cmd)
	if err := m.cfg.Keeper.Exec(ctx, id, exec, keeper.ExecOptions{RingBytes: ringBytes, CapBytes: c.CapBytes, AwaitReader: true}); err != nil {
		m.settleFailed(ctx, s, cmd, err)
		return keeper.Command{}, err
	}
	faultpoint.Hit(faultpoint.ExecStarted)
	errand.In(&m.background, func() { m.follow(s, cmd, timeout) })
	return keeper.Command{ID: cmd.id, Argv: c.Argv, Started: time.Now().UTC(), Terminal: c.PTY != nil}, nil
}

func checkCommand(c Command) error {
	size := 0
	for _, a := range c.Argv {
		size += len(a) + 1
	}
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return fault.Invalid("there is no command to start")
	case size > maxArgv:
		return fault.Invalid("the command is %d bytes long; at most %d", size, maxArgv)
	case c.Dir != "" && c.Dir[0] != '/':
		return fault.Invalid("the working directory %q must be an absolute path of the sandbox", c.Dir)
	}
	return checkEnv(c.Env)
}

// userOf is who does what names no user.
func (s *Sandbox) userOf(asked string) string {
	if asked == "" {
		return s.info.Account.Default
	}
	return asked
}

func orDir(dir, fallback string) string {
	if dir != "" {
		return dir
	}
	return fallback
}

// shorter is the smaller of two timeouts of which 0 means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// hold makes a command known to those who wait for it to be settled.
func (s *Sandbox) hold(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[c.id] = c
	s.usedNow()
}

// drop forgets a command that is settled: nobody waits for it.
func (s *Sandbox) drop(c *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.commands, c.id)
}

// Attach returns a connection with the command's frames from the offset on.
func (m *Manager) Attach(ctx context.Context, id, cmd string, offset int64) (net.Conn, error) {
	s, err := m.Get(id)
	if err != nil {
		return nil, err
	}
	conn, err := m.cfg.Keeper.Attach(ctx, id, cmd, offset)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.attached++
	s.unseen = false
	s.usedNow()
	s.mu.Unlock()
	return &attachment{Conn: conn, sandbox: s}, nil
}

// attachment counts the clients that look at a sandbox.
type attachment struct {
	net.Conn
	sandbox *Sandbox
	closed  bool // only Close touches it, and Close is called by one goroutine
}

// CloseWrite ends the client's half: no more input, the output goes on.
func (a *attachment) CloseWrite() error {
	if half, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close ends the attachment; the command goes on.
func (a *attachment) Close() error {
	if !a.closed {
		a.closed = true
		a.sandbox.mu.Lock()
		a.sandbox.attached--
		a.sandbox.usedNow()
		a.sandbox.mu.Unlock()
	}
	return a.Conn.Close()
}

// Commands returns the keeper's view of a sandbox's commands.
func (m *Manager) Commands(ctx context.Context, id string) ([]keeper.Command, error) {
	if _, err := m.Get(id); err != nil {
		return nil, err
	}
	k, err := m.cfg.Keeper.Get(ctx, id)
	return k.Commands, err
}

// Written returns what is kept of a command's output, with its times. Whoever reads it
// is no client that the command waits for.
func (m *Manager) Written(ctx context.Context, id, cmd string) (keeper.Output, error) {
	if _, err := m.Get(id); err != nil {
		return keeper.Output{}, err
	}
	return m.cfg.Keeper.Output(ctx, id, cmd)
}

// follow waits for a command's end and settles it. A guest that does not end
// its command at the timeout loses its sandbox. Time in which the sandbox waits for
// a person does not count.
func (m *Manager) follow(s *Sandbox, c *command, timeout time.Duration) {
	ctx := m.ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = s.waits.WithTimeout(m.ctx, timeout+timeoutGrace+guestGrace)
		defer cancel()
	}
	exit, err := m.awaitExit(ctx, s.info.ID, c.id)
	if err != nil && m.ctx.Err() != nil {
		return // the daemon ends; its successor follows the command
	}
	if errors.Is(err, context.DeadlineExceeded) {
		m.cfg.Log.Warn("a guest did not end its command at the timeout; its sandbox is destroyed", "sandbox", s.info.ID, "command", c.id)
		exit = channel.Exit{Code: 137, Signal: "KILL", TimedOut: true, Error: "the sandbox did not end the command at its timeout and was destroyed"}
		if err := s.instance.Signal(m.ctx, 9); err != nil {
			m.cfg.Log.Error("a sandbox can't be killed", "sandbox", s.info.ID, "err", err)
		}
	} else if err != nil {
		exit = channel.Exit{Code: 137, Error: "the sandbox ended"}
	}
	faultpoint.Hit(faultpoint.ExecEnded)
	m.settle(m.ctx, s, c, exit)
}

// awaitExit attaches behind the last byte, where only the exit is sent.
func (m *Manager) awaitExit(ctx context.Context, id, cmd string) (channel.Exit, error) {
	conn, err := m.cfg.Keeper.Attach(ctx, id, cmd, keeper.Tail)
	if err != nil {
		return channel.Exit{}, err
	}
	defer conn.Close()
	defer errand.When(ctx, func() { conn.Close() })()
	frames := channel.NewConn(conn)
	for {
		kind, payload, err := frames.ReadFrame()
		if err != nil {
			if ctx.Err() != nil {
				return channel.Exit{}, context.Cause(ctx)
			}
			return channel.Exit{}, orEOF(err)
		}
		if kind != channel.FrameExit {
			continue
		}
		var exit channel.Exit
		return exit, json.Unmarshal(payload, &exit)
	}
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}
