package admission

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Pushes answers for pushes of which a person is asked.
type Pushes struct {
	tenants *tenants
	holds   *holds
}

// push is one that a sandbox wants to make.
type push struct {
	t          *tenant
	ask        door.PushAsk
	repository string
}

// AwaitPush implements Door. The question is bound to the digest of all that is changed, so another push asks again.
func (ps *Pushes) AwaitPush(ctx context.Context, ask door.PushAsk) (door.Answer, error) {
	ctx, done := door.Lasting(ctx)
	defer done()
	t, err := ps.tenants.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	one, found, wrong := gitwire.Read("POST", ask.Path, "")
	if !found || wrong != "" || one.Operation != gitwire.Push || len(ask.Change.Commands) == 0 || len(ask.Change.Commands) > gitwire.MaxCommands {
		return door.Answer{}, fault.Invalid("a push is asked for that is none")
	}
	p := push{t, ask, one.Repository}
	h := ps.holds.beginHold(t)
	for {
		d, err := p.judgePush(ctx)
		switch {
		case err != nil:
			return door.Answer{}, err
		case d.Effect != policy.Hold:
			return p.decided(ctx, d)
		case !ask.Wait:
			return door.Answer{Decision: d}, nil
		}
		request, a, err := p.filePush(ctx, d)
		if err != nil || a.Decision.Effect != policy.Hold {
			return a, err
		}
		over, why, err := h.awaitFiledAnswer(ctx, request, Hold{Approval: request.ID, Push: request.Host.Named(), Reason: d.Reason})
		if err != nil {
			return door.Answer{}, err
		}
		if over {
			a.Decision.Reason += why
			return a, nil
		}
		if _, err := ps.tenants.admitTenant(ctx, ask.Sandbox); err != nil {
			return door.Answer{}, err // it may be gone by now
		}
	}
}

// judgePush judges by the policy of now, and by what people have answered.
func (p push) judgePush(ctx context.Context) (policy.Decision, error) {
	d, err := p.t.judgeHost(ctx, p.ask.Name, p.ask.Port, "")
	if err != nil || !d.Allowed() {
		return d, err
	}
	d, terms := p.t.policy().Requests().Judge(p.ask.Name, p.ask.Port, policy.Request{Method: "POST", Path: p.ask.Path})
	if !d.Allowed() || !terms.HeldPush {
		return d, nil
	}
	what := "the push to " + redact.Sealed(p.repository, 200)
	d.Effect, d.Rule, d.Reason = policy.Hold, door.RuleGit, what+" waits for approval; push is hold"
	if d = p.t.known.settleDecision(d); d.Effect != policy.Hold {
		return d, nil
	}
	answers, _, err := p.t.known.config.Approvals.Grants(ctx, p.subject().Project(), p.t.known.askerOf())
	if err != nil {
		return policy.Decision{}, fault.Wrap(fault.ErrUnavailable, err, "what people have answered about %s could not be read", what)
	}
	return policy.AnswerHost(d, what, answers), nil
}

// subject is what a person is asked about.
func (p push) subject() approval.Host {
	return approval.Host{Name: p.ask.Name, Port: p.ask.Port, Repository: p.repository, Push: p.ask.Change.Digest()}
}

// makeRecord makes a record of the push.
func (p push) makeRecord(d policy.Decision, outcome audit.Outcome) audit.Record {
	r := hostRecord(d, outcome, p.ask.Name, p.ask.Port)
	r.Detail[records.DetailRequest] = redact.Sealed("POST "+p.ask.Path, 256)
	r.Detail[records.DetailRefs] = redact.Sealed(strings.Join(p.listRefs(), "; "), 8<<10)
	r.Detail[records.DetailPush] = p.subject().Push
	return r
}

// filePush puts the push into the queue, and on record that it waits.
func (p push) filePush(ctx context.Context, d policy.Decision) (approval.Request, door.Answer, error) {
	w := p.t.asking(d)
	w.Host, w.Evidence = p.subject(), p.evidence()
	request, err := p.t.known.config.Approvals.Ask(ctx, w)
	if errors.Is(err, fault.ErrForbidden) {
		d.Effect, d.Rule, d.Reason = policy.Deny, ruleQueue, strings.TrimPrefix(notAsked(err), "; ")
		a, err := p.decided(ctx, d)
		return request, a, err
	}
	if err != nil {
		return request, door.Answer{}, err
	}
	r := p.makeRecord(d, audit.Pending)
	r.Approval = request.ID
	r, err = p.t.book.Refuse(ctx, r)
	return request, door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq, Approval: request.ID}, err
}

// decided answers for a push that does not wait any more.
func (p push) decided(ctx context.Context, d policy.Decision) (door.Answer, error) {
	p.t.book.Answered(d.Approval)
	switch {
	case !d.Allowed():
		r, err := hostRequests{p.t}.recordRefusal(ctx, d, audit.Blocked, p.ask.Name, p.ask.Port, "POST "+p.ask.Path)
		return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq, Approval: d.Approval}, err
	case d.Approval == "":
		return door.Answer{Decision: d}, nil // by a policy that came since
	}
	r, err := p.t.book.Append(ctx, p.makeRecord(d, audit.Used))
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq, Approval: d.Approval}, err
}

// showRef shows the name of a ref, or an option, to people. Both may have any letters, and some
// look like others, are not seen, or have the text around them read from right to left: all
// but ASCII is shown as its numbers. No ref has a backslash of its own.
func showRef(text string) string {
	quoted := strconv.QuoteToASCII(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// listRefs lists what is changed, a line for each ref, with the names of the objects whole.
func (p push) listRefs() []string {
	var lines []string
	for _, c := range p.ask.Change.Commands {
		ref := showRef(c.Ref)
		switch {
		case c.Deletes():
			lines = append(lines, ref+": deleted, was "+c.Old)
		case c.Creates():
			lines = append(lines, ref+": new, at "+c.New)
		default:
			lines = append(lines, ref+": "+c.Old+" -> "+c.New)
		}
	}
	return lines
}

// findings are what a person should look at first, the worst first: a list that is cut is cut
// at its end.
func (p push) findings() []string {
	var deleted, moved, unusual, letters []string
	for _, c := range p.ask.Change.Commands {
		ref := showRef(c.Ref)
		if ref != c.Ref {
			letters = append(letters, ref+" has letters beyond ASCII, which are shown as their numbers")
		}
		switch {
		case c.Deletes():
			deleted = append(deleted, "it deletes "+ref)
		case strings.HasPrefix(c.Ref, "refs/tags/") && !c.Creates():
			moved = append(moved, "it moves the tag "+ref+", which is there already")
		case !strings.HasPrefix(c.Ref, "refs/heads/") && !strings.HasPrefix(c.Ref, "refs/tags/"):
			unusual = append(unusual, ref+" is neither a branch nor a tag")
		}
	}
	return slices.Concat(deleted, moved, unusual, letters)
}

// evidence is what a person is shown of it.
func (p push) evidence() evidence.Evidence {
	var options []string
	for _, option := range p.ask.Change.Options {
		options = append(options, showRef(option))
	}
	return evidence.Evidence{
		Findings: p.findings(),
		Unchecked: []string{
			"history: whether a branch is rewound, as with push --force, is not seen here, where the repository is not known",
			"contents: nobody has looked into the objects; their names bind them",
		},
		Host: &evidence.Host{
			Protocol: "git", Commands: hostAsker{p.t}.commands(), Refs: p.listRefs(), Options: options,
			Objects: int(p.ask.Change.Objects), Bytes: p.ask.Size,
		},
	}
}
