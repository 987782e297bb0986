package admission

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// settleTime is how long the end of a sandbox waits for the ends of its connections, so
// that the log has what they carried.
const settleTime = 500 * time.Millisecond

// detailRequests tells that the requests of a connection are judged, and when it has
// ended how many were passed on.
const (
	detailRequests = "requests"
	requestsJudged = "judged"
	detailDials    = "dials" // connections to the host, of one of the guest's
)

// judgeHost judges a name on a port; port 0 is a DNS question. The protocol counts only if
// it is door.ProtocolTCP. A host that the sandbox's own client closed stays closed under any policy, so that reason comes first.
func (t *tenant) judgeHost(ctx context.Context, name string, port int, protocol string) (policy.Decision, error) {
	if open, reason := t.narrowing.getNarrowing().Name(name); !open {
		return policy.Decision{Effect: policy.Deny, Rule: ruleNarrowing, ResolvedBy: policy.ByNetwork, Reason: reason}, nil
	}
	judge := t.policy().Host
	if protocol == door.ProtocolTCP {
		judge = t.policy().HostTCP
	}
	d := judge(name, port)
	if d.Effect != policy.Deny && t.run.Plan {
		return policy.Decision{Effect: policy.Deny, Rule: rulePlan, ResolvedBy: policy.ByNetwork, Reason: "installs are only weighed here, so nothing but package registries is reached"}, nil
	}
	return hostAsker{t}.weighAnswers(ctx, d, name, port)
}

// judgeAddresses returns d, unless the sandbox's client has closed one of the addresses.
func (t *tenant) judgeAddresses(d policy.Decision, name string, addresses []netip.Addr) policy.Decision {
	narrowing := t.narrowing.getNarrowing()
	for _, a := range addresses {
		if open, reason := narrowing.Address(name, a); !open {
			return policy.Decision{Effect: policy.Deny, Rule: ruleNarrowing, ResolvedBy: policy.ByNetwork, Reason: reason}
		}
	}
	return d
}

// Connect implements Door.
func (c *Controller) Connect(ctx context.Context, ask door.ConnectAsk) (door.Answer, error) {
	t, err := c.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	if len(ask.Addresses) == 0 {
		return door.Answer{}, fault.Invalid("a connection is asked for without an address")
	}
	d, err := t.judgeHost(ctx, ask.Name, ask.Port, ask.Protocol)
	if err != nil {
		return door.Answer{}, err
	}
	if d.Would != "" && !t.unlisted.takeName(ask.Name, c.config.Clock.Read().Now, c.config.Limits.Names) {
		return hostAsker{t}.tooMany(ctx)
	}
	if d.Allowed() {
		d = onlyPublic(t.judgeAddresses(d, ask.Name, ask.Addresses), ask)
		d = hostRequests{t}.carried(d, ask.Name, ask.Port, ask.Judged)
	}
	t.book.Answered(d.Approval)
	if !d.Allowed() {
		r, err := t.refuseHost(ctx, d, audit.Blocked, ask.Name, ask.Port)
		return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
	}
	if err := (observer{t}).recordHost(ctx, d, ask.Name, ask.Port); err != nil {
		return door.Answer{}, err
	}
	detail := hostDetail(ask.Name, ask.Port)
	detail[records.DetailProtocol], detail[records.DetailAddresses] = redact.Cut(ask.Protocol, 16), addressesText(ask.Addresses)
	if ask.Judged {
		detail[detailRequests] = requestsJudged
	}
	r, err := t.book.Append(ctx, asLetThrough(audit.Record{
		Kind: audit.KindNetwork, Outcome: audit.Started, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: d.Reason, Detail: detail, Approval: d.Approval,
	}, d))
	if err != nil {
		return door.Answer{}, err
	}
	t.lookups.noteLed(ask.Name)
	t.reached.addNames(c.secrets.Of(ask.Name))
	t.hosts.Begin(r, ask.Addresses)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, hostRequests{t}.awaited(ctx, r.Seq)
}

// awaited ends a connection whose asker has given the question up: he will never tell the end.
func (h hostRequests) awaited(ctx context.Context, seq uint64) error {
	t := h.t
	err := ctx.Err()
	if err == nil {
		return nil
	}
	if began, gone := t.hosts.End(seq); gone == nil { // else somebody has ended it meanwhile
		err = errors.Join(err, t.endConnection(ctx, began, "the gateway did not wait for the answer", nil))
	}
	return err
}

func hostDetail(name string, port int) map[string]string {
	detail := map[string]string{records.DetailName: redact.Cut(name, 253)}
	if port != 0 {
		detail[records.DetailPort] = strconv.Itoa(port)
	}
	return detail
}

func addressesText(addresses []netip.Addr) string {
	const most = 16
	var texts []string
	for _, a := range addresses[:min(len(addresses), most)] {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, " ")
}

// refuseHost records a refusal about a name, or counts it. Port 0 is a DNS question.
func (t *tenant) refuseHost(ctx context.Context, d policy.Decision, outcome audit.Outcome, name string, port int) (audit.Record, error) {
	return hostRequests{t}.recordRefusal(ctx, d, outcome, name, port, "")
}

// hostRequests are those of one sandbox.
type hostRequests struct{ t *tenant }

// carried is d, as long as a connection whose requests are to be judged is carried
// by one who asks about each.
func (h hostRequests) carried(d policy.Decision, name string, port int, judged bool) policy.Decision {
	if !d.Allowed() || judged || !h.t.policy().Requests().Judged(name, port) {
		return d
	}
	return policy.Decision{
		Effect: policy.Deny, Rule: door.RuleHostRequest, ResolvedBy: policy.ByNetwork,
		Reason: "each request to it is judged, by a policy that came after this connection; connect again",
	}
}

// recordRefusal records a refusal about a name, or a request to it, which is told by its method and path; "":
// about the name alone.
func (h hostRequests) recordRefusal(ctx context.Context, d policy.Decision, outcome audit.Outcome, name string, port int, request string) (audit.Record, error) {
	t := h.t
	r := hostRecord(d, outcome, name, port)
	if request != "" {
		r.Detail[records.DetailRequest] = redact.Cut(request, 256)
	}
	return t.book.Refuse(ctx, withinQuota(t.book, r))
}

// withinQuota is a refusal's record, or where too many of its kind are on record, the one
// of all the others of that kind.
func withinQuota(b *records.Book, r audit.Record) audit.Record {
	kind, takes := b.ReserveRecord(r)
	if takes {
		return r
	}
	rule := ruleNamesQuota
	if kind == records.KindRequest {
		rule = ruleRefusalsQuota
	}
	r.Outcome, r.Rule, r.Detail = audit.Exceeded, rule, nil
	r.Reason = "more different " + string(kind) + "s were refused than are recorded one by one"
	return r
}

// hostRecord is the record of a refusal about a name, or of what would be one.
func hostRecord(d policy.Decision, outcome audit.Outcome, name string, port int) audit.Record {
	r := audit.Record{
		Kind: audit.KindNetwork, Outcome: outcome, ResolvedBy: string(d.ResolvedBy), Rule: d.Rule, Reason: redact.Cut(d.Reason, 1_024), Detail: hostDetail(name, port),
		Approval: d.Approval,
	}
	records.Explain(&r, d)
	return r
}

// HostRefused implements Door.
func (c *Controller) HostRefused(ctx context.Context, h door.HostRefusal) (door.Answer, error) {
	t, err := c.admitTenant(ctx, h.Sandbox)
	if err != nil {
		return door.Answer{}, err
	}
	d := policy.Decision{Effect: policy.Deny, Rule: redact.Cut(h.Rule, 64), ResolvedBy: policy.ByNetwork, Reason: h.Reason}
	outcome := audit.Blocked
	if h.Rule == door.RuleHostUnresolved || h.Rule == door.RuleHostUnreached {
		outcome = audit.Failed
	}
	r, err := hostRequests{t}.recordRefusal(ctx, d, outcome, h.Name, h.Port, h.Request)
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}

// Standing implements Door.
func (c *Controller) Standing(ctx context.Context, sandbox string, connections []uint64) (ended []uint64, err error) {
	t, err := c.admitTenant(ctx, sandbox)
	if err != nil {
		return nil, err
	}
	for _, seq := range connections {
		one, goesOn := t.hosts.Get(seq)
		if goesOn {
			name := one.Record.Detail[records.DetailName]
			port, _ := strconv.Atoi(one.Record.Detail[records.DetailPort]) // written by hostDetail
			d, err := t.judgeHost(ctx, name, port, one.Record.Detail[records.DetailProtocol])
			if err != nil {
				return nil, err
			}
			d = hostRequests{t}.carried(d, name, port, one.Record.Detail[detailRequests] != "")
			goesOn = d.Allowed() && t.judgeAddresses(d, name, one.Addresses).Allowed()
		}
		if !goesOn {
			ended = append(ended, seq)
		}
	}
	return ended, nil
}

// Disconnected implements Door.
func (c *Controller) Disconnected(ctx context.Context, d door.Disconnection) error {
	t, err := c.tenants.getTenant(d.Sandbox)
	if err != nil {
		return err
	}
	began, err := t.hosts.End(d.Seq)
	if err != nil && t.hosts.Kept(d.Seq) { // it was told before, when the log did not take it
		return t.book.WriteOwed(ctx)
	}
	if err != nil {
		return err
	}
	how := map[string]string{
		records.DetailBytesOut: strconv.FormatInt(d.BytesOut, 10), records.DetailBytesIn: strconv.FormatInt(d.BytesIn, 10),
		detailTook: strconv.FormatInt(d.Milliseconds, 10),
	}
	if d.Dials > 1 {
		how[detailDials] = strconv.FormatInt(d.Dials, 10)
	}
	if d.Address != "" {
		how[records.DetailAddress] = redact.Cut(d.Address, 64)
	}
	if began.Detail[detailRequests] != "" {
		how[detailRequests] = strconv.FormatInt(d.Requests, 10)
	}
	var unreached error
	if d.Unreached {
		port, _ := strconv.Atoi(began.Detail[records.DetailPort]) // written by hostDetail
		refused := policy.Decision{Effect: policy.Deny, Rule: door.RuleHostUnreached, ResolvedBy: policy.ByNetwork, Reason: d.Problem}
		_, unreached = t.refuseHost(ctx, refused, audit.Failed, began.Detail[records.DetailName], port)
	}
	// Whatever became of that, which the quota of records may refuse, the end comes on record.
	if err = t.endConnection(ctx, began, redact.Cut(d.Problem, 1_024), how); !records.Kept(err) {
		return err
	}
	t.hosts.Carry(d.BytesOut)
	t.hosts.Carry(d.BytesIn)
	return errors.Join(unreached, err)
}

// endConnection puts on record that a connection has ended, and how. If that can neither be
// written nor kept, the connection goes on, for whoever tells it again.
func (t *tenant) endConnection(ctx context.Context, began audit.Record, problem string, how map[string]string) error {
	r := began
	r.Outcome, r.Reason = audit.Finished, problem
	r.Detail = maps.Clone(began.Detail)
	maps.Copy(r.Detail, how)
	r.Detail[records.DetailBegan] = strconv.FormatUint(began.Seq, 10)
	r.Seq, r.Time = 0, time.Time{}
	_, err := t.book.Append(ctx, r)
	switch {
	case !records.Kept(err):
		t.hosts.Resume(began.Seq)
	case err != nil:
		t.hosts.Keep(began.Seq)
	}
	return err
}

// endConnections puts on record that all connections have ended. Nobody knows what they carried: their carrier has gone.
func (t *tenant) endConnections(ctx context.Context, reason string) error {
	var errs []error
	for _, seq := range t.hosts.Open() {
		if began, err := t.hosts.End(seq); err == nil { // else it has ended meanwhile
			errs = append(errs, t.endConnection(ctx, began, reason, nil))
		}
	}
	return errors.Join(errs...)
}

// settleConnections waits a moment for connections that are about to end, and ends the
// others.
func (t *tenant) settleConnections(ctx context.Context, reason string) error {
	within, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	t.hosts.Settle(within)
	return t.endConnections(ctx, reason)
}
