package gateway

import (
	"context"
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// failed records what the gateway itself refused, and gives the id to show.
// A refusal that can't be recorded is given all the same, without an id.
func (g *Gateway) failed(q *query, f door.Failure) string {
	return g.recordFailure(q.r.Context(), q.sandbox, f)
}

func (g *Gateway) recordFailure(ctx context.Context, sandbox string, f door.Failure) string {
	f.Sandbox = sandbox
	f.Reason = ecosystem.Line(f.Reason)
	a, err := g.door.Failed(context.WithoutCancel(ctx), f)
	if err != nil {
		g.log.Error("a refusal could not be recorded", "sandbox", sandbox, "error", err)
		return ""
	}
	return a.RequestID
}

// refuseRoute answers what is no route. A name that is not canonical is
// recorded; nothing was sent upstream.
func (g *Gateway) refuseRoute(q *query, err error) {
	if !errors.Is(err, fault.ErrInvalid) {
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: errorSentence(err)})
		return
	}
	r := ecosystem.Refusal{Cause: ecosystem.Malformed, Reason: errorSentence(err)}
	r.RequestID = g.failed(q, door.Failure{
		Package: pkgref.Ref{Ecosystem: q.source.Ecosystem()}, ResolvedBy: policy.ByCanonical, Reason: r.Reason,
	})
	q.answerRefusal(r)
}

// refusePage answers for a page that there is not, and records why, whether or not the client is still there.
func (g *Gateway) refusePage(q *query, ref pkgref.Ref, err error) {
	if q.r.Context().Err() != nil {
		return // the gateway is stopping, which is no fault of the page's
	}
	if errors.Is(err, upstream.ErrUnrecorded) {
		g.refuseUndecided(q, ref, err)
		return
	}
	g.log.Warn("an index page is refused", "sandbox", q.sandbox, "project", q.route.Project, "error", err)
	r := ecosystem.Refusal{Cause: causeOf(err), What: ref.String(), Reason: errorSentence(err)}
	r.RequestID = g.failed(q, pageFailure(q.source.Source, ref, err))
	q.answerRefusal(r)
}

// pageFailure is the record of a page that there is not.
func pageFailure(s pages.Source, ref pkgref.Ref, err error) door.Failure {
	return door.Failure{
		Rule:    ruleOf(err),
		Package: ref, SourceURL: s.Protocol.IndexAsk(s.Index, ref.Name).URL, ResolvedBy: policy.ByIntegrity, Reason: errorSentence(err),
	}
}

// refuseFile answers for a file that can't be had, and records why, whether or not the client is still there.
func (g *Gateway) refuseFile(q *query, l located, err error) {
	if q.r.Context().Err() != nil {
		return // the gateway is stopping, which is no fault of the file's
	}
	if errors.Is(err, upstream.ErrUnrecorded) {
		g.refuseUndecided(q, l.ref, err)
		return
	}
	g.log.Warn("a file is refused", "sandbox", q.sandbox, "file", q.route.File, "error", err)
	r := ecosystem.Refusal{Cause: causeOf(err), What: l.ref.String(), Reason: errorSentence(err)}
	r.RequestID = g.failed(q, fileFailure(l, q.route.File, err))
	q.answerRefusal(r)
}

// fileFailure is the record of a file that can't be had.
func fileFailure(l located, name string, err error) door.Failure {
	return door.Failure{
		Rule:    ruleOf(err),
		Package: l.ref, File: name, SourceURL: l.url, ResolvedBy: policy.ByIntegrity, Reason: errorSentence(err),
		Metadata: l.file.Kind == policy.KindMetadata,
	}
}

// wrongAhead records, for the guests for whom a file was fetched that nobody has asked for yet, that it is not what it
// should be. That it can't be had now is nothing to record: nobody was refused.
func (g *Gateway) wrongAhead(l located, guests []string, err error) {
	if !errors.Is(err, fault.ErrInvalid) {
		return
	}
	for _, sandbox := range guests {
		g.log.Warn("a file is wrong that was fetched ahead", "sandbox", sandbox, "file", l.file.Name, "error", err)
		g.recordFailure(g.flights.Life(), sandbox, fileFailure(l, l.file.Name, err))
	}
}

// wrongPage records the same of a page that was asked for again while the old one was served.
func (g *Gateway) wrongPage(s pages.Source, project string, guests []string, err error) {
	if !errors.Is(err, fault.ErrInvalid) {
		return
	}
	ref := pkgref.Ref{Ecosystem: s.Ecosystem(), Name: project}
	for _, sandbox := range guests {
		g.recordFailure(g.flights.Life(), sandbox, pageFailure(s, ref, err))
	}
}

// refuseUndecided answers when the door could not decide or record.
func (g *Gateway) refuseUndecided(q *query, ref pkgref.Ref, err error) {
	g.log.Error("a file could not be judged", "sandbox", q.sandbox, "file", q.route.File, "error", err)
	q.answerRefusal(undecided(ref, err))
}

// undecided words why there is no decision: a limit of the run, which the door
// words, or what is the operator's to find.
func undecided(ref pkgref.Ref, err error) ecosystem.Refusal {
	if errors.Is(err, fault.ErrForbidden) {
		return ecosystem.Refusal{Cause: ecosystem.ByPolicy, What: ref.String(), Reason: errorSentence(err)}
	}
	return ecosystem.Refusal{Cause: ecosystem.Unreachable, What: ref.String(), Reason: "the request could not be decided and recorded"}
}

// errorSentence is what a person may read of an error: never the upstream's text.
func errorSentence(err error) string {
	return fault.Sentence(err, "something inside the gateway failed")
}

// ruleOf is the rule on record of what has no rule of the policy's: that the upstream
// does not have it, does not give it or fails is nobody's refusal here. "" is the door's
// to name.
func ruleOf(err error) string {
	switch {
	case errors.Is(err, fault.ErrNotFound):
		return door.RuleMissing
	case errors.Is(err, upstream.ErrDeclined):
		return door.RuleDeclined
	case errors.Is(err, upstream.ErrFailed):
		return door.RuleFailed
	default:
		return ""
	}
}

// causeOf sorts an error into what it means to a client.
func causeOf(err error) ecosystem.Cause {
	switch {
	case errors.Is(err, fault.ErrNotFound):
		return ecosystem.Missing
	case errors.Is(err, fault.ErrUnavailable):
		return ecosystem.Unreachable
	case errors.Is(err, upstream.ErrDeclined):
		return ecosystem.Declined
	case errors.Is(err, errRefusedNames), errors.Is(err, errShownNames):
		return ecosystem.ByPolicy
	}
	return ecosystem.Unverified
}
