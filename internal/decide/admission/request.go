package admission

import (
	"context"
	"maps"
	"strconv"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// detailStatus is of a request: its answer's.
const detailStatus = "status"

// Requests decides about requests to hosts whose TLS the gateway ends, and records them.
type Requests struct {
	tenants *tenants
	log     audit.Log
	gone    afterlife // of sandboxes that have ended; has a lock of its own
	leaf    func(ctx context.Context, hosts []string, name string) (door.Certificate, error)
	tell    func(ctx context.Context, sandbox string, hosts []string) error // see Config.TellTrust
}

// Request implements Door. Hosts that people have opened, and that the sandbox's client has closed,
// are judged as with Connect; then the policies' rules are.
func (q *Requests) Request(ctx context.Context, ask door.RequestAsk) (door.RequestAnswer, error) {
	t, err := q.tenants.admitTenant(ctx, ask.Sandbox)
	if err != nil {
		return door.RequestAnswer{}, err
	}
	ctx = context.WithoutCancel(ctx) // that its client does not wait keeps no refusal from the record
	d, err := t.judgeHost(ctx, ask.Name, ask.Port, "")
	if err != nil {
		return door.RequestAnswer{}, err
	}
	terms := policy.RequestTerms{}
	if d.Allowed() {
		d, terms = t.policy().Requests().Judge(ask.Name, ask.Port, policy.Request{Method: ask.Method, Path: ask.Path, Query: ask.Query})
	}
	if d.Allowed() {
		return door.RequestAnswer{Answer: door.Answer{Decision: d}, Terms: terms}, nil
	}
	r, err := hostRequests{t}.recordRefusal(ctx, d, audit.Blocked, ask.Name, ask.Port, ask.Method+" "+ask.Path)
	return door.RequestAnswer{Answer: door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}}, err
}

// Requested implements Door. The record that its connection began says whose it was.
func (q *Requests) Requested(ctx context.Context, done door.RequestsDone) error {
	t, err := q.tenants.getTenant(done.Sandbox)
	if err != nil {
		return q.gone.requested(ctx, q.log, done, Limits{}.orDefaults().Requests)
	}
	t.requests.telling.Lock() // the same can be told twice at a time
	defer t.requests.telling.Unlock()
	one, known := t.hosts.Known(done.Connection)
	if !known {
		if one, known, err = (hostRequests{t}).recall(ctx, done.Connection); err != nil {
			return err
		}
	}
	if !known {
		return fault.New(fault.ErrNotFound, "record %d is not a connection of this sandbox of which more is taken", done.Connection)
	}
	for _, request := range done.Requests {
		if t.hosts.Told(one, request.Number) {
			continue
		}
		if err := (hostRequests{t}).recordRequest(ctx, one.Record, request); !records.Kept(err) {
			return err
		}
		t.hosts.Tell(one, request.Number)
	}
	if t.book.Owes() { // what the log did not take now, or when it was told before
		return t.book.WriteOwed(ctx)
	}
	return nil
}

// recall is a connection of which only the log knows by now. However many others of its guest's
// have ended since, what became of its requests comes on record.
func (h hostRequests) recall(ctx context.Context, seq uint64) (one records.Connection, known bool, err error) {
	began, known, err := connectionOf(ctx, h.t.known.config.Log, h.t.run.Sandbox, seq)
	if !known || err != nil {
		return one, false, err
	}
	return h.t.hosts.Recall(began), true, nil
}

// recordRequest records what became of a request, unless there are too many.
func (h hostRequests) recordRequest(ctx context.Context, began audit.Record, request door.RequestDone) error {
	t := h.t
	own, tell := t.requests.countRequest(t.known.config.Limits.Requests)
	if !own && !tell {
		return nil
	}
	if tell {
		_, err := t.book.Append(ctx, tooManyRequests())
		return t.requests.undone(own, err)
	}
	_, err := t.book.Append(ctx, requestRecord(began, request))
	return t.requests.undone(own, err)
}

// tooManyRequests is the record that stands for those past the quota.
func tooManyRequests() audit.Record {
	return audit.Record{
		Kind: audit.KindNetwork, ResolvedBy: string(policy.ByNetwork), Outcome: audit.Exceeded, Rule: ruleRequestsQuota,
		Reason: "more requests were made than are recorded one by one; the end of each connection tells how many",
	}
}

// requestRecord is the record of what became of a request on a connection that began so.
func requestRecord(began audit.Record, request door.RequestDone) audit.Record {
	r := audit.Record{
		Kind: audit.KindNetwork, ResolvedBy: string(policy.ByNetwork), Outcome: audit.Finished,
		Rule: redact.Cut(request.Rule, 300), Reason: redact.Cut(request.Problem, 1_024),
	}
	r.Detail = map[string]string{
		records.DetailRequest: redact.Cut(request.Method+" "+request.Path, 1_024), records.DetailBegan: strconv.FormatUint(began.Seq, 10),
		records.DetailBytesOut: strconv.FormatInt(request.BytesOut, 10), records.DetailBytesIn: strconv.FormatInt(request.BytesIn, 10),
		detailTook: strconv.FormatInt(request.Milliseconds, 10),
	}
	if request.Status != 0 {
		r.Detail[detailStatus] = strconv.Itoa(request.Status)
	}
	maps.Copy(r.Detail, map[string]string{records.DetailName: began.Detail[records.DetailName], records.DetailPort: began.Detail[records.DetailPort]})
	return r
}
