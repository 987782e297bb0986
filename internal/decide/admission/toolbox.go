package admission

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Toolbox has sandboxes call tools of the host: each call is judged, then recorded, then
// made, and its end is recorded. It runs in the daemon's process; nothing of a tool is
// known to the gateway.
type Toolbox struct {
	tenants *tenants
	tools   *tool.Set
	queue   callQueue
	holds   *holds // those that wait for a person
	log     *slog.Logger
}

// Keys of a tool's records, beside records.DetailTool.
const (
	detailArguments       = "arguments" // their beginning, if the tool's declaration wants it
	detailArgumentsSize   = "arguments_bytes"
	detailArgumentsSHA256 = "arguments_sha256" // of the arguments in their one form
	detailResultSize      = "result_bytes"
	detailResultSHA256    = "result_sha256"
)

// maxArgumentsKept bounds what a record keeps of a call's arguments, in bytes.
const maxArgumentsKept = 8 << 10

// Tools implements Door.
func (b *Toolbox) Tools(ctx context.Context, sandbox string) ([]door.Tool, error) {
	t, err := b.tenants.getTenant(sandbox)
	if err != nil {
		return nil, err
	}
	if err := t.book.Open(ctx); err != nil {
		return nil, err
	}
	list := []door.Tool{}
	for _, one := range slices.Concat(b.tools.All(), t.run.Tools.All()) {
		if !t.run.Plan && t.policy().ToolListed(one.Name).Allowed() {
			list = append(list, door.Tool{Name: one.Name, Description: one.Description, Arguments: one.Schema.Text()})
		}
	}
	return list, nil
}

// CallTool implements Door.
func (b *Toolbox) CallTool(ctx context.Context, ask door.ToolAsk) (door.ToolAnswer, error) {
	t, err := b.tenants.getTenant(ask.Sandbox)
	if err != nil {
		return door.ToolAnswer{}, err
	}
	if err := t.book.Open(ctx); err != nil {
		return door.ToolAnswer{}, err
	}
	client, leave := context.WithCancel(ctx)
	defer leave()
	ctx, done := door.Lasting(client)
	defer done()
	seat, problem := b.queue.enterCall(&t.calls, leave, time.Now())
	if problem != "" {
		return caller{t}.refuseCall(ctx, door.ToolBusy, ask.Tool, policy.Decision{Rule: door.RuleToolQuota, ResolvedBy: policy.ByRule, Reason: problem})
	}
	defer seat.leaveQueue()
	if ask.Malformed != "" {
		return caller{t}.refuseCall(ctx, door.ToolInvalid, cmp.Or(ask.Tool, "(no name)"), policy.Decision{Rule: door.RuleToolForm, ResolvedBy: policy.ByRule, Reason: printable(ask.Malformed)})
	}
	c := toolCall{box: b, t: t, seat: seat, hold: b.holds.beginHold(t), ask: ask}
	for {
		outcome, d, err := c.judgeCall(ctx)
		if err != nil {
			return door.ToolAnswer{}, c.unjudged(ctx, err)
		}
		var a door.ToolAnswer
		over := true
		switch outcome {
		case "":
			a, over, err = c.makeCall(ctx)
		case door.ToolHeld:
			a, over, err = c.fileAndAwait(ctx, d)
		default:
			a, err = caller{t}.refuseCall(ctx, outcome, ask.Tool, d)
		}
		if over || err != nil {
			return a, err
		}
	}
}

// toolCall is one call.
type toolCall struct {
	box       *Toolbox
	t         *tenant
	seat      *seat
	hold      *hold
	ask       door.ToolAsk
	tool      *tool.Tool
	own       bool // the sandbox's own, and not the host's
	arguments tool.Arguments
	judged    string // the definition of the tool that the decision is about; "": of none in particular
	decision  policy.Decision
}

// judgeCall says why the call is not to be made; "" if it is. A tool that the policy does not
// list is refused before anybody looks whether there is one, so that a sandbox learns
// nothing of others' tools.
func (c *toolCall) judgeCall(ctx context.Context) (door.ToolOutcome, policy.Decision, error) {
	name := c.ask.Tool
	if c.t.run.Plan {
		return door.ToolRefused, policy.Decision{Rule: rulePlan, ResolvedBy: policy.ByRule, Reason: "installs are only weighed here, so no tool is called"}, nil
	}
	if d := c.t.policy().ToolListed(name); !d.Allowed() {
		return door.ToolRefused, d, nil
	}
	known := false
	c.own = false
	if c.tool, known = c.box.tools.Get(name); !known {
		c.tool, known = c.t.run.Tools.Get(name)
		c.own = known
	}
	if !known {
		return door.ToolUnknown, policy.Decision{
			Rule: door.RuleToolUnknown, ResolvedBy: policy.ByRule, Reason: "the policy lists the tool " + printable(name) + ", and this installation has none of that name",
		}, nil
	}
	var err error
	if c.arguments, err = tool.ReadArguments(c.ask.Arguments); err == nil {
		err = c.tool.Schema.Judge(c.arguments)
	}
	if err != nil {
		return door.ToolInvalid, policy.Decision{Rule: door.RuleToolArguments, ResolvedBy: policy.ByRule, Reason: fault.Sentence(err, "the arguments can't be read")}, nil
	}
	d, err := c.t.judging.judgeText(ctx, c.t, len(c.ask.Arguments), func() policy.CommandInput {
		return policy.CommandInput{Tool: &name, Arguments: &policy.Arguments{Text: c.arguments.Text(), Members: c.arguments.Members()}}
	})
	if err != nil {
		return "", d, err
	}
	if c.decision, err = c.weighAnswers(ctx, d); err != nil {
		return "", c.decision, err
	}
	switch {
	case c.decision.Allowed():
		return "", c.decision, nil
	case c.decision.Effect == policy.Hold:
		return door.ToolHeld, c.decision, nil
	}
	return door.ToolRefused, c.decision, nil
}

// unjudged records that nobody knows whether the call may be made, and that it is not: a guest can bring that about,
// by as many calls as may wait. The error is cause.
func (c *toolCall) unjudged(ctx context.Context, cause error) error {
	_, err := caller{c.t}.refuseCall(ctx, door.ToolRefused, c.ask.Tool, policy.Decision{
		Rule: door.RuleToolUnjudged, ResolvedBy: policy.ByRule, Reason: "the call was not judged, and not made: " + fault.Sentence(cause, "it broke off"),
	})
	if records.Kept(err) {
		return cause
	}
	return errors.Join(cause, err)
}

// refuseLeft refuses a call that may be made, and whose caller has gone: no answer is used up for it.
func (c *toolCall) refuseLeft(ctx context.Context) (door.ToolAnswer, error) {
	return caller{c.t}.refuseCall(ctx, door.ToolRefused, c.tool.Name, policy.Decision{
		Rule: door.RuleToolLeft, ResolvedBy: policy.ByRule, Reason: "the call may be made, and whoever called went before it was; it was not made",
	})
}

// makeCall records that the call begins, makes it, and records how it ended; over is false if
// the answer that let it be made was taken by another one, so that it has to be judged
// again.
func (c *toolCall) makeCall(ctx context.Context) (a door.ToolAnswer, over bool, err error) {
	if door.ClientOf(ctx).Err() != nil {
		a, err = c.refuseLeft(ctx)
		return a, true, err
	}
	d, undo := c.t.calls.beginCall(c.t.policy())
	if !d.Allowed() {
		a, err = caller{c.t}.refuseCall(ctx, door.ToolRefused, c.tool.Name, d)
		return a, true, err
	}
	if taken, err := c.useAnswer(ctx); taken || err != nil {
		undo()
		if err != nil {
			err = c.unjudged(ctx, err)
		}
		return door.ToolAnswer{}, false, err
	}
	began, err := c.t.book.Append(ctx, c.recordOfBegin())
	if err != nil {
		undo()
		return door.ToolAnswer{}, true, err
	}
	c.t.book.Answered(c.decision.Approval)
	a, err = c.runCall(ctx, began)
	return a, true, err
}

// runCall makes a call that is on record, and records how it ended. A call that the guest gave up
// is ended, and so is every call of a sandbox that ends.
func (c *toolCall) runCall(ctx context.Context, began audit.Record) (door.ToolAnswer, error) {
	at := time.Now()
	result, failed := c.tool.Call(door.ClientOf(ctx), tool.Call{Run: c.t.run.Run, Sandbox: c.t.run.Sandbox, Arguments: c.arguments.Text(), Judged: c.judged})
	took := time.Since(at)
	if failed != nil {
		c.box.warnOperator("a tool failed", "tool", c.tool.Name, "sandbox", c.t.run.Sandbox, "request", began.RequestID, "error", failed)
	}
	if _, err := c.t.book.Append(context.WithoutCancel(ctx), c.endRecord(began, result, failed, took)); err != nil {
		return door.ToolAnswer{}, err // what is not on record is not told
	}
	if failed != nil {
		return door.ToolAnswer{Outcome: door.ToolFailed, Reason: sentenceOf(failed), RequestID: began.RequestID}, nil
	}
	return door.ToolAnswer{Outcome: door.ToolAnswered, Result: jsontext.Value(result), RequestID: began.RequestID}, nil
}

// recordOfBegin returns the record that a call begins: the digest of its arguments, and not they, unless
// the tool's declaration says so.
func (c *toolCall) recordOfBegin() audit.Record {
	text := c.arguments.Text()
	r := audit.Record{
		Kind: audit.KindTool, Outcome: audit.Started, User: c.t.run.User,
		ResolvedBy: string(c.decision.ResolvedBy), Rule: c.decision.Rule, Reason: redact.Cut(c.decision.Reason, 1_024), Approval: c.decision.Approval,
		Detail: map[string]string{
			records.DetailTool: c.tool.Name, detailArgumentsSize: strconv.Itoa(len(text)), detailArgumentsSHA256: digestOf(text),
		},
	}
	if c.tool.Record {
		r.Detail[detailArguments] = redact.Cut(text, maxArgumentsKept)
	}
	return r
}

func (c *toolCall) endRecord(began audit.Record, result string, failed error, took time.Duration) audit.Record {
	r := audit.Record{
		Kind: audit.KindTool, Outcome: audit.Finished, User: began.User, RequestID: began.RequestID, Rule: began.Rule,
		Detail: map[string]string{
			records.DetailTool: c.tool.Name, records.DetailBegan: strconv.FormatUint(began.Seq, 10), detailTook: strconv.FormatInt(took.Milliseconds(), 10),
		},
	}
	if failed != nil {
		r.Outcome, r.Reason = audit.Failed, redact.Cut(sentenceOf(failed), 1_024)
		if f, ok := errors.AsType[*tool.Failure](failed); ok {
			r.Exit = f.Exit
		}
		return r
	}
	r.Detail[detailResultSize], r.Detail[detailResultSHA256] = strconv.Itoa(len(result)), digestOf(result)
	return r
}

// warnOperator tells the operator what a guest is not told.
func (b *Toolbox) warnOperator(message string, about ...any) {
	if b.log != nil {
		b.log.Warn(message, about...)
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// sentenceOf is what a guest may read of a failed call.
func sentenceOf(err error) string {
	if f, ok := errors.AsType[*tool.Failure](err); ok {
		return f.Sentence
	}
	return "the tool could not be called"
}

// refuseCall records that a call was refused, or counts it.
func (c caller) refuseCall(ctx context.Context, outcome door.ToolOutcome, name string, d policy.Decision) (door.ToolAnswer, error) {
	r := audit.Record{
		Kind: audit.KindTool, Outcome: audit.Blocked, User: c.t.run.User, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: redact.Cut(printable(d.Reason), 1_024),
		Approval: d.Approval, Detail: map[string]string{records.DetailTool: printable(name)},
	}
	records.Explain(&r, d)
	c.t.book.Answered(d.Approval)
	r, err := c.t.book.Refuse(ctx, withinQuota(c.t.book, r))
	return door.ToolAnswer{Outcome: outcome, Approval: d.Approval, Reason: cmp.Or(printable(d.Reason), "the call was refused"), RequestID: r.RequestID}, err
}

// printable is a guest's word for a record: short, and in ASCII that draws nothing.
func printable(s string) string {
	kept := []byte(redact.Cut(s, 1_024))
	for i, c := range kept {
		if c < ' ' || c > '~' {
			kept[i] = '?'
		}
	}
	return string(kept)
}
