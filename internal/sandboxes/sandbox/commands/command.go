package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
)

// Command asks for a process in a sandbox.
type Command struct {
	Argv    []string
	Judged  string             // what the policy's rules see as the command; "": argv joined by spaces
	Code    bool               // the last word of Argv is code, which rules on code judge
	Refused *admission.Refused // by the caller's own rules: it is recorded, and never started
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
	maxEnv       = 1_000
	maxName      = 4 << 10 // bytes of a variable's name
	execRest     = 1 << 10 // of the JSON of a command: all but its words, variables and directory
)

// MaxCommand is how long a command is at most, with its variables and directory, in bytes as JSON: the
// sandbox's agent is told of it in one message.
const MaxCommand = channel.MaxJSON - execRest

// MaxEnv is how long the variables of a sandbox, a command or a cell are at most, in bytes as JSON: the
// sandbox's agent is told of them in one message, among other things.
const MaxEnv = 192 << 10

// Start starts a command: judged and recorded first. A refusal is
// fault.ErrForbidden with the rule's reason. A command whose ctx ends before it has
// started does not start, or is killed, and its real end is on record.
func (t *Table) Start(ctx context.Context, c Command) (keeper.Command, error) {
	info := t.place.Info
	cmd, err := t.admitCommand(ctx, c)
	if err != nil {
		return keeper.Command{}, err
	}
	c.User = info.Account.User(c.User)
	timeout := shorter(c.Timeout, t.place.Limit)
	exec := channel.Exec{
		ID: cmd.id, Argv: c.Argv, Env: c.Env, Dir: cmd.dir, User: c.User,
		PTY: c.PTY, Stdin: c.Stdin, Timeout: timeout.Milliseconds(), Grace: timeoutGrace.Milliseconds(),
	}
	faultpoint.Hit(faultpoint.ExecJudged)
	t.place.Inventory.AsRoot(c.User)
	t.holdCommand(cmd)
	if gone := context.Cause(ctx); gone != nil { // while it was judged, which is on record
		t.settleFailed(t.life, cmd, gone)
		return keeper.Command{}, gone
	}
	_, err = t.beginProcess(ctx, start{
		exec: exec, options: keeper.ExecOptions{RingBytes: ringBytes, CapBytes: c.CapBytes, AwaitReader: true},
		began: func(unwanted bool) {
			cmd.unwanted = unwanted
			faultpoint.Hit(faultpoint.ExecStarted)
			t.guardCommand(cmd, guardTime(timeout))
			safego.In(t.group, func() { t.followCommand(cmd) })
		},
		failed: func(err error) { t.settleFailed(t.life, cmd, err) },
	})
	if err != nil {
		return keeper.Command{}, err
	}
	return keeper.Command{ID: cmd.id, Argv: c.Argv, Started: time.Now().UTC(), Terminal: c.PTY != nil}, nil
}

// admitCommand has a command judged and recorded.
func (t *Table) admitCommand(ctx context.Context, c Command) (*tableCommand, error) {
	id, info := t.place.Info.ID, t.place.Info
	if err := checkCommand(c); err != nil {
		return nil, err
	}
	if state := t.place.State(); !state.Usable() {
		return nil, state.Refuse(id)
	}
	cmd := &tableCommand{id: journal.NewID("cmd-", 6), settled: make(chan struct{}), dir: cmp.Or(c.Dir, info.Workdir)}
	cmd.argv, cmd.env = briefCommand(c.Argv, c.Env)
	answer, err := t.cfg.Door.CommandAs(ctx, id, cmd.id, admission.Asked{Argv: c.Argv, Text: c.Judged, Code: c.Code, Refused: c.Refused})
	if err != nil {
		return nil, err
	}
	if !answer.Decision.Allowed() {
		return nil, fault.New(fault.ErrForbidden, "%s (rule %s, request %s)", answer.Decision.Reason, answer.Decision.Rule, answer.RequestID)
	}
	return cmd, nil
}

// maxListed is how much of a command's words and variables is kept for the list of those that run, in bytes: a sandbox
// may have very many, each for as long as it likes, and nobody counts that.
const maxListed = 8 << 10

// briefCommand is a command for that list: of a very long one its program alone, and so far as that fits.
func briefCommand(argv []string, env map[string]string) ([]string, map[string]string) {
	size := 0
	for _, word := range argv {
		size += len(word) + 16
	}
	if size > maxListed {
		return []string{strings.Clone(argv[0][:min(len(argv[0]), maxListed)])}, nil
	}
	for name, value := range env {
		size += len(name) + len(value) + 32
	}
	if size > maxListed {
		return argv, nil
	}
	return argv, env
}

// MaxDir is the longest path that Linux takes, in bytes. It is kept for as long as the command runs.
const MaxDir = 4095

func checkCommand(c Command) error {
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return fault.Invalid("there is no command to start")
	case len(c.Dir) > MaxDir:
		return fault.Invalid("the working directory is a path of %d bytes; at most %d", len(c.Dir), MaxDir)
	case c.Dir != "" && c.Dir[0] != '/':
		return fault.Invalid("the working directory %q must be an absolute path of the sandbox", c.Dir)
	}
	if err := checkText(c); err != nil {
		return err
	}
	if err := CheckEnv(c.Env); err != nil {
		return err
	}
	if size := sizeOf(channel.Exec{Argv: c.Argv, Env: c.Env, Dir: c.Dir, User: c.User}); size > MaxCommand {
		return fault.Invalid("the command is %d bytes long as JSON, with its variables and directory; at most %d: put what is long into a file", size, MaxCommand)
	}
	return nil
}

// sizeOf is how many bytes something has as JSON.
func sizeOf(v any) int {
	text, err := json.Marshal(v)
	if err != nil {
		return math.MaxInt // text always marshals
	}
	return len(text)
}

// checkText refuses what would not arrive as it is: the guest's message and the record carry text.
func checkText(c Command) error {
	for i, word := range c.Argv {
		if !utf8.ValidString(word) {
			return fault.Invalid("word %d of the command is no UTF-8: %.80q", i+1, word)
		}
	}
	if !utf8.ValidString(c.Dir) || !utf8.ValidString(c.User) {
		return fault.Invalid("the working directory %.80q or the user %.80q is no UTF-8", c.Dir, c.User)
	}
	return nil
}

// shorter is the smaller of two timeouts of which 0 means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// CheckEnv refuses what can't be an environment; values are the agent's own
// business and reach nothing of the host.
func CheckEnv(env map[string]string) error {
	if len(env) > maxEnv {
		return fault.Invalid("%d environment variables; at most %d", len(env), maxEnv)
	}
	if size := sizeOf(env); size > MaxEnv {
		return fault.Invalid("the environment is %d bytes long as JSON; at most %d", size, MaxEnv)
	}
	for k, v := range env {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fault.Invalid("the environment variable %.80q is no UTF-8, in its name or its value", k)
		}
		if k == "" || len(k) > maxName || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return fault.Invalid("the environment variable %q is not valid: a name without = and no NUL bytes", k)
		}
	}
	return nil
}
