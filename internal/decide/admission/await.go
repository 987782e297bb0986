package admission

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The rule of an ask that the queue does not take.
const ruleQueue = "approvals.limit"

// answerWaiting answers a question about what waits that is not to be had yet.
func (t *tenant) answerWaiting(q fileQuestion, w weighed) (door.Answer, error) {
	if err := t.moveRelease(q, w); err != nil {
		return door.Answer{}, err
	}
	return door.Answer{Decision: w.decision}, nil
}

// previewed answers for a release that waits, whose metadata is read. It will be wanted
// with the rest of its tree, so it is filed, that a person sees the whole tree when its
// first file waits; nobody waits for that here.
func (t *tenant) previewed(ctx context.Context, q fileQuestion, w weighed) (door.Answer, error) {
	a, err := t.answerWaiting(q, w)
	if err != nil || !slices.ContainsFunc(q.fileFacts().Digests, policy.StrongDigest) {
		return a, err
	}
	ask := t.fileAsk(q, w.decision)
	if t.rehearsals.Defer(&ask) {
		return a, nil
	}
	request, err := t.known.fileAsk(ctx, ask)
	if err != nil && !errors.Is(err, fault.ErrForbidden) { // a full queue refuses the file, later
		return door.Answer{}, err
	}
	a.Approval = shownAs(request)
	return a, nil
}

// maxStale is how often an answer may be found that decides nothing.
const maxStale = 3

// awaitAnswer files what waits and waits for the answer as the policy says, and again
// if the answer was not about all of it. The decision then is the answer; so
// is the hold itself, once nobody waits any more.
func (c *Controller) awaitAnswer(ctx context.Context, t *tenant, q fileQuestion, w weighed) (door.Answer, error) {
	notes, err := foreseen(ctx, t, q, w)
	if err != nil && door.ClientOf(ctx).Err() == nil { // who has gone is shown nothing of the tree, and asks again
		return door.Answer{}, err
	}
	h := c.holds.beginHold(t)
	for {
		ask := t.fileAsk(q, w.decision)
		ask.Notes = notes
		request, err := t.known.fileAsk(ctx, ask)
		if errors.Is(err, fault.ErrForbidden) {
			return t.overfull(ctx, q, w.decision, err)
		}
		if err != nil {
			return door.Answer{}, err
		}
		r, err := t.book.Refuse(ctx, pendingRecord(q, w.decision, shownAs(request)))
		if err != nil {
			return door.Answer{}, err
		}
		a := door.Answer{Decision: w.decision, RequestID: r.RequestID, Seq: r.Seq, Approval: shownAs(request)}
		over, why, err := h.awaitFiledAnswer(ctx, request, Hold{Approval: request.ID, Tree: request.Tree, Package: q.Package, Reason: w.decision.Reason})
		if err != nil {
			return door.Answer{}, err
		}
		if over {
			a.Decision.Reason += why
			return a, nil
		}
		if _, err := c.admitTenant(ctx, q.Sandbox); err != nil {
			return door.Answer{}, err // it may be gone by now
		}
		if w, err = t.weighFile(ctx, q); err != nil {
			return door.Answer{}, err
		}
		if w.decision.Effect != policy.Hold {
			return t.decided(ctx, q, w)
		}
	}
}

// overfull refuses what the queue does not take, with its sentence.
func (t *tenant) overfull(ctx context.Context, q fileQuestion, d policy.Decision, cause error) (door.Answer, error) {
	d.Effect, d.Rule, d.Reason = policy.Deny, ruleQueue, strings.TrimPrefix(notAsked(cause), "; ")
	r, err := t.book.Refuse(ctx, blockedRecord(q, d))
	return door.Answer{Decision: d, RequestID: r.RequestID, Seq: r.Seq}, err
}

// notAsked follows the reason of what the queue does not take.
func notAsked(cause error) string {
	text := "; nobody is asked about it"
	if f, ok := errors.AsType[*fault.Fault](cause); ok {
		text += ": " + f.Sentence
	}
	return text
}

func pendingRecord(q fileQuestion, d policy.Decision, id string) audit.Record {
	r := artifactRecord(q, audit.Pending, d)
	r.Approval = id
	records.Explain(&r, d)
	return r
}

// holds are the requests of all sandboxes that are kept waiting for a person. Each owner has a share
// of them: a token, or a sandbox of the host's.
type holds struct {
	config *Config
	kept   *fairqueue.Shares
}

// newHolds makes them. Some are sure for each owner; of all there are fewer than the door has calls
// that wait (door.Server).
func newHolds(config *Config) *holds {
	shares := fairqueue.Fair(config.Limits.AllWaiting, 0)
	shares.Sure, shares.Most = min(16, shares.Each), config.Limits.AllWaiting*5/4
	return &holds{config: config, kept: fairqueue.New(shares)}
}

// hold is one client's request that waits, once or more often.
type hold struct {
	of      *holds
	t       *tenant
	mode    policy.HoldMode
	maxWait time.Duration
	until   time.Time // of HoldWait
	stale   int       // answers that decided nothing
}

// beginHold begins to count a client's patience.
func (h *holds) beginHold(t *tenant) *hold {
	one := &hold{of: h, t: t, mode: policy.HoldFail}
	if !t.run.Plan {
		one.mode, one.maxWait = t.policy().OnHold()
	}
	one.until = time.Now().Add(one.maxWait)
	return one
}

// awaitFiledAnswer returns once a request that was just filed has an answer to be weighed; over:
// nobody waits for that any more, and why follows the reason.
func (h *hold) awaitFiledAnswer(ctx context.Context, request approval.Request, what Hold) (over bool, why string, err error) {
	if request.State == approval.Pending {
		answered, why, err := h.awaitDecision(ctx, what)
		return !answered, why, err
	}
	if h.stale++; h.stale > maxStale {
		return false, "", fault.New(fault.ErrConflict, "%s is %s as %s, and waits all the same", request.What(), request.State, request.ID)
	}
	return false, "", nil
}

// awaitDecision returns once the request is answered, or when nobody waits for that any
// more; why, if it is not the policy's word, follows the reason. An error is the
// end of the client's patience, or of everything.
func (h *hold) awaitDecision(ctx context.Context, what Hold) (answered bool, why string, err error) {
	ctx = door.ClientOf(ctx) // nobody waits for one who has gone
	if h.mode == policy.HoldFail {
		return false, "", nil
	}
	if err := ctx.Err(); err != nil {
		return false, "", err
	}
	free, why := h.takePlace()
	if free == nil {
		return false, why, nil
	}
	defer free()
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if h.mode == policy.HoldWait {
		bounded, cancel = context.WithDeadline(ctx, h.until)
	}
	defer cancel()
	if holder := h.of.config.Holder; holder != nil {
		holder.Held(h.t.run.Sandbox, what, h.mode == policy.HoldFreeze)
		defer func() {
			if released := holder.Released(ctx, h.t.run.Sandbox, what); err == nil {
				err = released
			}
		}()
	}
	request, err := h.of.config.Approvals.Await(bounded, what.Approval)
	switch {
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case bounded.Err() != nil && err != nil:
		return false, "; nobody answered within " + h.maxWait.String(), nil
	case err == nil && request.State == approval.Expired && !request.Used():
		return false, "; its request has expired, and a retry makes a new one", nil
	}
	return err == nil, "", err
}

// takePlace keeps a place among those that wait, of which there is an end.
func (h *hold) takePlace() (free func(), why string) {
	limits := h.of.config.Limits
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	if h.t.holding >= limits.Waiting {
		return nil, "; so many requests of this sandbox wait already that this one is not kept waiting"
	}
	_, done, ok := h.of.kept.Try(fairqueue.For(context.Background(), h.t.run.payerOf()))
	if !ok {
		return nil, "; so many requests wait already that this one is not kept waiting"
	}
	h.t.holding++
	return func() {
		done()
		h.t.mu.Lock()
		defer h.t.mu.Unlock()
		h.t.holding--
	}, ""
}
