package admission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"path"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxCommand bounds what a record keeps of a command's arguments, in bytes.
const maxCommand = 32 << 10

// Command judges a command by the policy's rules before it is started. If it is
// allowed its `started` record is durable when Command returns; if not, its
// `blocked` record is.
func (c *Controller) Command(ctx context.Context, sandbox, id string, argv []string) (door.Answer, error) {
	return c.CommandAs(ctx, sandbox, id, Asked{Argv: argv})
}

// Asked is a command with what its caller says of it.
type Asked struct {
	Argv []string
	// Text is what the rules see as the command, of an argv that only carries a text to a
	// shell; "": argv joined by spaces. The caller vouches that argv does nothing else.
	Text string
	// Code tells that the last word of argv is code that somebody handed over as text; it is
	// judged as that, too.
	Code bool
	// Refused is why rules of the caller's own refuse it; nil: they don't. It can only narrow.
	Refused *Refused
}

// Refused is a refusal by rules that the caller has, and the daemon has not.
type Refused struct{ Rule, Reason string }

// ByCaller is resolved_by of what the caller's own rules refused.
const ByCaller policy.ResolvedBy = "caller"

// decision is the refusal in the log's words. Its text is the caller's, and is made short
// and printable.
func (r Refused) decision() policy.Decision {
	rule := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '-'
	}, r.Rule)
	return policy.Decision{Effect: policy.Deny, Rule: "caller." + redact.Cut(rule, 80), ResolvedBy: ByCaller, Reason: redact.Cut(printable(r.Reason), 500)}
}

// CommandAs is Command for a command of which more is known than its words.
func (c *Controller) CommandAs(ctx context.Context, sandbox, id string, asked Asked) (door.Answer, error) {
	t, err := c.admitTenant(ctx, sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	argv := asked.Argv
	d, err := t.judging.judgeText(ctx, t, bytesOfWords(argv)+len(asked.Text), func() policy.CommandInput {
		in := commandInput(argv, asked.Text)
		if asked.Code && len(argv) > 0 {
			in.Code = &argv[len(argv)-1]
		}
		return in
	})
	r := audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, User: t.run.User, Detail: map[string]string{records.DetailCommand: id}}
	keepCommand(&r, argv)
	if err != nil {
		return door.Answer{}, unjudged(ctx, t, r, err)
	}
	d = t.known.settleDecision(d)
	if asked.Refused != nil && d.Allowed() {
		d = asked.Refused.decision()
	}
	r.ResolvedBy, r.Rule, r.Reason = string(d.ResolvedBy), d.Rule, d.Reason
	if !d.Allowed() {
		r.Outcome = audit.Blocked
	}
	if r, err = t.book.Append(ctx, r); err != nil {
		return door.Answer{}, err
	}
	t.takeCommand(r, argv, c.config.Limits)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, nil
}

// ruleUnjudged is of what was to be judged by rules, and was not.
const ruleUnjudged = "rules.unjudged"

// unjudged records that a command, a cell or a call was not judged, and does not run, because whoever asked went before
// that, or too many wait for it: else who asks could choose what is on record. The error is cause.
func unjudged(ctx context.Context, t *tenant, r audit.Record, cause error) error {
	r.Outcome, r.ResolvedBy, r.Rule = audit.Blocked, string(policy.ByRule), ruleUnjudged
	r.Reason = "it was not judged, and did not run: " + fault.Sentence(cause, "whoever asked went before")
	r, err := t.book.Append(ctx, r)
	if err == nil {
		t.book.Blocked(r)
	}
	if records.Kept(err) {
		return cause
	}
	return errors.Join(cause, err)
}

// takeCommand takes a command's record.
func (t *tenant) takeCommand(r audit.Record, argv []string, limits Limits) {
	if r.Outcome == audit.Blocked {
		t.book.Blocked(r)
		return
	}
	t.mu.Lock()
	t.running[r.Detail[records.DetailCommand]] = r
	t.mu.Unlock()
	t.takeClaims(argv, limits)
}

// takeClaims takes what a command asks for.
func (t *tenant) takeClaims(argv []string, limits Limits) {
	found := t.clients.Read(argv)
	t.mu.Lock()
	defer t.mu.Unlock()
	for p, specifier := range found {
		if _, known := t.claims[p]; known || len(t.claims) < limits.Edges {
			t.claims[p] = specifier
		}
	}
}

// keepCommand puts a command into a record. One that is too long for a record
// is kept by its beginning and its digest.
func keepCommand(r *audit.Record, argv []string) {
	size := 0
	for i, arg := range argv {
		if size+len(arg) <= maxCommand {
			size += len(arg) + 8
			r.Command = append(r.Command, arg)
			continue
		}
		sum := sha256.Sum256([]byte(strings.Join(argv, "\x00")))
		r.Command = append(r.Command, redact.Cut(arg, max(0, maxCommand-size)))
		r.Detail["command_sha256"] = hex.EncodeToString(sum[:])
		r.Detail["arguments_left_out"] = strconv.Itoa(len(argv) - i - 1)
		return
	}
}

// commandInput is what rules see of a command: text, or "" for argv itself.
func commandInput(argv []string, text string) policy.CommandInput {
	command := text
	if command == "" {
		command = strings.Join(argv, " ")
	}
	in := policy.CommandInput{Command: &command}
	if code, ok := inlineCode(argv); ok {
		in = codeInput(languageIn(argv), code)
		in.Command = &command
	}
	return in
}

// languageIn is the language of the code in such a command; "": nothing looks into it.
func languageIn(argv []string) string {
	if strings.HasPrefix(path.Base(argv[0]), "py") {
		return "python"
	}
	return ""
}

// inlineCode finds the code in `python3 -c CODE` and its like: the interpreter,
// options of one word, and the option that hands code over.
func inlineCode(argv []string) (string, bool) {
	if len(argv) < 3 {
		return "", false
	}
	var option byte
	switch name := strings.TrimRight(path.Base(argv[0]), "0123456789."); name {
	case "python", "pypy":
		option = 'c'
	case "node", "perl", "ruby":
		option = 'e'
	default:
		return "", false
	}
	for i, arg := range argv[1:] {
		if len(arg) < 2 || arg[0] != '-' {
			return "", false
		}
		if at := strings.IndexByte(arg, option); at > 0 && arg[1] != '-' {
			if rest := arg[at+1:]; rest != "" && option == 'c' {
				return rest, true // python3 -cCODE
			}
			return strings.Join(argv[min(i+2, len(argv)):min(i+3, len(argv))], ""), true
		}
	}
	return "", false
}

// CommandFinished records how a command ended. It is recorded whatever the
// run's quota says. An end that the log does not take is written later, see OwesEnd.
func (c *Controller) CommandFinished(ctx context.Context, sandbox, id string, exit channel.Exit) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	t.mu.Lock()
	started := t.running[id]
	t.mu.Unlock()
	weighAnew(ctx, t)
	r := audit.Record{
		Kind: audit.KindCommand, Outcome: audit.Finished, User: t.run.User, Command: started.Command, RequestID: started.RequestID,
		Exit: &exit.Code, Detail: exitDetail(id, exit), GuestClaimed: exit.Claimed,
	}
	if _, err = t.book.Append(ctx, r); !records.Kept(err) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, id)
	t.finished[id] = true
	return err
}

func exitDetail(id string, exit channel.Exit) map[string]string {
	d := map[string]string{
		records.DetailCommand: id,
		"stdout_bytes":        strconv.FormatInt(exit.StdoutBytes, 10), "stderr_bytes": strconv.FormatInt(exit.StderrBytes, 10),
	}
	for key, value := range map[string]string{"signal": redact.Cut(exit.Signal, 32), "error": redact.Cut(exit.Error, 1_024)} {
		if value != "" {
			d[key] = value
		}
	}
	for key, is := range map[string]bool{"timed_out": exit.TimedOut, "truncated": exit.Truncated} {
		if is {
			d[key] = "true"
		}
	}
	return d
}

// Finished returns the ids of the sandbox's commands whose end is on record.
func (c *Controller) Finished(_ context.Context, sandbox string) map[string]bool {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.finished)
}
