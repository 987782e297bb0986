package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/address"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// unlisted are the names that a sandbox asked for and that its policy leaves to a person, or
// only observes, each with the time of its first question. Safe for concurrent use.
type unlisted struct {
	mu    sync.Mutex // guards first
	first map[string]time.Time
}

// takeName takes a name in; false: there are too many others.
func (u *unlisted) takeName(name string, now time.Time, most int) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.first[name]; known {
		return true
	}
	if len(u.first) >= most {
		return false
	}
	if u.first == nil {
		u.first = map[string]time.Time{}
	}
	u.first[name] = now
	return true
}

func (u *unlisted) firstSeen(name string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.first[name]
}

// hostAsker asks people about hosts for a sandbox.
type hostAsker struct{ t *tenant }

// weighAnswers weighs what people have answered about a host that waits. A DNS question
// is about no port yet, so it stays a hold.
func (h hostAsker) weighAnswers(ctx context.Context, d policy.Decision, name string, port int) (policy.Decision, error) {
	t := h.t
	d = t.known.settleDecision(d)
	if d.Effect != policy.Hold && d.Would == "" || port == 0 || t.known.config.Approvals == nil {
		return d, nil
	}
	project := approval.Host{Name: name, Port: port}.Project()
	answers, _, err := t.known.config.Approvals.Grants(ctx, project, t.known.askerOf())
	if err != nil {
		return policy.Decision{}, fault.Wrap(fault.ErrUnavailable, err, "what people have answered about %s could not be read", redact.Cut(name, 253))
	}
	return policy.AnswerHost(d, name, answers), nil
}

// onlyPublic is d, unless a person opened the name, or the policy only observes, and an address of
// it is not public: what leads into private networks is for a policy to list. The addresses that
// the operator's configuration has for a name are the operator's word to a person, who decides by
// name; nobody decides what is only observed.
func onlyPublic(d policy.Decision, ask door.ConnectAsk) policy.Decision {
	who := "a person opens"
	switch {
	case d.Would != "":
		who = "a policy that only observes opens"
	case d.ResolvedBy != policy.ByApproval || ask.Pinned:
		return d
	}
	for _, a := range ask.Addresses {
		if class := address.ClassOf(a); class != address.Public {
			return policy.Decision{
				Effect: policy.Deny, Rule: door.RuleHostAddress, ResolvedBy: policy.ByNetwork, Approval: d.Approval,
				Reason: redact.Cut(ask.Name, 253) + " has a " + string(class) + " address, and " + who + " names with public ones alone; a policy has to list it",
			}
		}
	}
	return d
}

// tooMany refuses a name past those that one sandbox may have asked about. It is
// recorded once, without the name.
func (h hostAsker) tooMany(ctx context.Context) (door.Answer, error) {
	t := h.t
	d := policy.Decision{
		Effect: policy.Deny, Rule: ruleNamesQuota, ResolvedBy: policy.ByNetwork,
		Reason: "this run has asked for more different names than a person is asked about; list those that it needs",
	}
	r, err := t.book.Refuse(ctx, audit.Record{
		Kind: audit.KindNetwork, Outcome: audit.Exceeded, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
	})
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}

// AwaitHost implements Door. Nobody has looked the name up by then: a question to the
// world's resolvers tells the name's owner what the name spells, so that comes after a
// person's answer, too.
func (c *Controller) AwaitHost(ctx context.Context, ask door.HostAsk) (door.Answer, error) {
	ctx, done := door.Lasting(ctx)
	defer done()
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	h := c.holds.beginHold(t)
	for {
		d, err := t.judgeHost(ctx, ask.Name, ask.Port, ask.Protocol)
		if err != nil {
			return door.Answer{}, err
		}
		if d.Effect != policy.Hold {
			return hostAsker{t}.decided(ctx, d, ask)
		}
		if !t.unlisted.takeName(ask.Name, c.config.Clock.Read().Now, c.config.Limits.Names) {
			return hostAsker{t}.tooMany(ctx)
		}
		request, a, err := hostAsker{t}.fileHost(ctx, d, ask)
		if err != nil || a.Decision.Effect != policy.Hold {
			return a, err
		}
		over, why, err := h.awaitFiledAnswer(ctx, request, Hold{Approval: request.ID, Host: request.Host.String(), Reason: d.Reason})
		if err != nil {
			return door.Answer{}, err
		}
		if over {
			a.Decision.Reason += why
			return a, nil
		}
		if _, err := c.admitTenant(ctx, ask.Sandbox); err != nil {
			return door.Answer{}, err // it may be gone by now
		}
	}
}

// fileHost puts a host into the queue, and on record that it waits.
func (h hostAsker) fileHost(ctx context.Context, d policy.Decision, ask door.HostAsk) (approval.Request, door.Answer, error) {
	t := h.t
	request, err := t.known.config.Approvals.Ask(ctx, hostAsker{t}.hostAsk(d, ask))
	if errors.Is(err, fault.ErrForbidden) {
		d.Effect, d.Rule, d.Reason = policy.Deny, ruleQueue, strings.TrimPrefix(notAsked(err), "; ")
		r, err := t.refuseHost(ctx, d, audit.Blocked, ask.Name, ask.Port)
		return request, door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
	}
	if err != nil {
		return request, door.Answer{}, err
	}
	r := audit.Record{
		Kind: audit.KindNetwork, Outcome: audit.Pending, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason,
		Detail: hostDetail(ask.Name, ask.Port), Approval: request.ID,
	}
	records.Explain(&r, d)
	r, err = t.book.Refuse(ctx, r)
	return request, door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq, Approval: request.ID}, err
}

// decided answers for a host that does not wait any more. An allowed connection has its record with Connect.
func (h hostAsker) decided(ctx context.Context, d policy.Decision, ask door.HostAsk) (door.Answer, error) {
	t := h.t
	t.book.Answered(d.Approval)
	if d.Allowed() {
		return door.Answer{Decision: d}, nil
	}
	r, err := t.refuseHost(ctx, d, audit.Blocked, ask.Name, ask.Port)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq, Approval: d.Approval}, err
}

// replayRecord takes from a record of the network what was asked of people.
func (h hostAsker) replayRecord(r audit.Record, limits Limits) {
	t := h.t
	switch {
	case r.Kind == audit.KindNetwork && records.Observed(r):
		t.unlisted.takeName(r.Detail[records.DetailName], r.Time, limits.orDefaults().Names)
	case r.Kind != audit.KindNetwork || r.Approval == "":
	case r.Outcome == audit.Pending && r.Detail[records.DetailRequest] != "": // a push, to a host that is listed
	case r.Outcome == audit.Pending:
		t.unlisted.takeName(r.Detail[records.DetailName], r.Time, limits.orDefaults().Names)
	default:
		t.book.Answered(r.Approval)
	}
}

// maxCommands is how many running commands an ask for a host names.
const maxCommands = 5

// hostAsk is a host that waits, for the queue.
func (h hostAsker) hostAsk(d policy.Decision, ask door.HostAsk) approval.Ask {
	t := h.t
	w := t.asking(d)
	w.Host = approval.Host{Name: ask.Name, Port: ask.Port}
	w.Evidence = evidence.Evidence{
		FirstSeen: t.unlisted.firstSeen(ask.Name), Similar: hostAsker{t}.findNearName(ask.Name),
		Unchecked: []string{
			"addresses: to look the name up tells its owner that it was asked for, so that is done once it is approved; one that is not public is refused then",
			"reputation: this installation knows no list of hosts",
		},
		Host: &evidence.Host{Protocol: redact.Cut(ask.Protocol, 16), Commands: hostAsker{t}.commands()},
	}
	if strings.HasPrefix(ask.Name, "xn--") || strings.Contains(ask.Name, ".xn--") {
		w.Evidence.Findings = []string{"a part of the name is written in other letters than these (xn--), which can look like those of another name"}
	}
	return w
}

// commands are the commands that run in the sandbox, the newest first: one of them, or
// what it started, asked.
func (h hostAsker) commands() []string {
	t := h.t
	t.mu.Lock()
	var running []audit.Record
	for _, r := range t.running {
		running = append(running, r)
	}
	t.mu.Unlock()
	slices.SortFunc(running, func(a, b audit.Record) int { return int(b.Seq) - int(a.Seq) })
	var texts []string
	for _, r := range running[:min(len(running), maxCommands)] {
		texts = append(texts, redact.Sealed(strings.Join(r.Command, " "), 200))
	}
	return texts
}

// findNearName finds a name of the policy's list that another can be mistaken for; "": there is
// none. Of a wildcard the name's end is compared.
func (h hostAsker) findNearName(name string) string {
	t := h.t
	for _, layer := range t.policy().Layers() {
		for _, listed := range layer.NetworkAllowlist() {
			like := name
			if labels := strings.Split(name, "."); listed.Wildcard {
				like = strings.Join(labels[max(0, len(labels)-1-strings.Count(listed.Host, ".")):], ".")
			}
			if approval.AlmostSame(like, listed.Host) {
				return listed.String() + ": it is almost this name, which the policy lists"
			}
		}
	}
	return ""
}
