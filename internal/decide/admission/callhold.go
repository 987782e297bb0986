package admission

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// subject is the call as a person is asked about it: the very tool that would be called, and
// the very text that it would get.
func (c *toolCall) subject() approval.Call {
	text := c.arguments.Text()
	return approval.Call{
		Tool: c.tool.Name, Source: c.sourceName(), Definition: c.tool.Definition(), Digest: approval.DigestOf(text), Arguments: text,
	}
}

// sourceName is whose tool is called: one of the host's is anybody's, and one that a client has
// given to a sandbox is that sandbox's alone.
func (c *toolCall) sourceName() string {
	if c.own {
		return approval.SourceSandbox(c.t.run.Sandbox)
	}
	return approval.SourceHost
}

// weighAnswers weighs what people have answered about a call that waits. Nobody is asked about
// one past those that the policy has for the sandbox.
func (c *toolCall) weighAnswers(ctx context.Context, d policy.Decision) (policy.Decision, error) {
	c.judged = ""
	d = c.t.known.settleDecision(d)
	if d.Effect != policy.Hold {
		return d, nil
	}
	if left := c.t.calls.decideCallsLeft(c.t.policy()); !left.Allowed() {
		return left, nil
	}
	about := c.subject()
	c.judged = about.Definition
	answers, _, err := c.t.known.config.Approvals.Grants(ctx, about.Project(), c.t.known.askerOf())
	if err != nil {
		return policy.Decision{}, fault.Wrap(fault.ErrUnavailable, err, "what people have answered about the tool %s could not be read", c.tool.Name)
	}
	return policy.AnswerCall(d, c.tool.Name, about.Bound(), answers), nil
}

// fileAndAwait files a call and waits for the answer as the policy says; over is true once nobody
// waits for that any more. Meanwhile the call takes no other's place.
func (c *toolCall) fileAndAwait(ctx context.Context, d policy.Decision) (a door.ToolAnswer, over bool, err error) {
	request, err := c.t.known.config.Approvals.Ask(ctx, c.toolAsk(d))
	if errors.Is(err, fault.ErrForbidden) {
		d.Effect, d.Rule, d.Reason = policy.Deny, ruleQueue, strings.TrimPrefix(notAsked(err), "; ")
		a, err = caller{c.t}.refuseCall(ctx, door.ToolRefused, c.tool.Name, d)
		return a, true, err
	}
	if err != nil {
		return a, true, c.unjudged(ctx, err)
	}
	r, err := c.t.book.Refuse(ctx, c.pending(request, d))
	if err != nil {
		return a, true, err
	}
	a = door.ToolAnswer{Outcome: door.ToolHeld, Reason: d.Reason, RequestID: r.RequestID, Approval: request.ID}
	c.seat.restSeat()
	over, why, err := c.hold.awaitFiledAnswer(ctx, request, Hold{Approval: request.ID, Tool: request.Call.Named(), Reason: d.Reason})
	if over || err != nil {
		a.Reason += why
		return a, true, err
	}
	if problem := c.seat.resume(); problem != "" {
		a, err = caller{c.t}.refuseCall(ctx, door.ToolBusy, c.tool.Name, policy.Decision{Rule: door.RuleToolQuota, ResolvedBy: policy.ByRule, Reason: problem})
		return a, true, err
	}
	_, err = c.box.tenants.admitTenant(ctx, c.ask.Sandbox) // it may be gone by now
	return a, false, err
}

// useAnswer takes the answer that lets the call be made, if one does; taken: another call has.
func (c *toolCall) useAnswer(ctx context.Context) (taken bool, err error) {
	if c.decision.ResolvedBy != policy.ByApproval {
		return false, nil
	}
	err = c.t.known.config.Approvals.Use(ctx, c.decision.Approval)
	if !errors.Is(err, fault.ErrConflict) {
		return false, err
	}
	if c.hold.stale++; c.hold.stale > maxStale {
		return false, err
	}
	return true, nil
}

// toolAsk is a call that waits, for the queue.
func (c *toolCall) toolAsk(d policy.Decision) approval.Ask {
	w := c.t.asking(d)
	w.Call = c.subject()
	w.Evidence = evidence.Evidence{Call: &evidence.Call{Commands: hostAsker{c.t}.commands(), Description: redact.Sealed(c.tool.Description, 1_024)}}
	return w
}

// pending is the record that the call waits.
func (c *toolCall) pending(request approval.Request, d policy.Decision) audit.Record {
	text := c.arguments.Text()
	r := audit.Record{
		Kind: audit.KindTool, Outcome: audit.Pending, User: c.t.run.User, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule,
		Reason: redact.Cut(printable(d.Reason), 1_024), Approval: request.ID,
		Detail: map[string]string{records.DetailTool: c.tool.Name, detailArgumentsSize: strconv.Itoa(len(text)), detailArgumentsSHA256: digestOf(text)},
	}
	records.Explain(&r, d)
	return r
}
