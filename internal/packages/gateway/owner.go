package gateway

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// takeOwner makes the query's source the one to which its project's name
// belongs, whatever host the client asked on, before any upstream hears the
// name. owned tells that the name belongs to one; ok false that the query was
// answered with a refusal.
func (g *Gateway) takeOwner(q *query) (owned, ok bool) {
	ref := q.refOf("")
	answer, err := g.askOwner(q)
	if err != nil {
		g.refuseUndecided(q, ref, err)
		return false, false
	}
	q.admitted = answer.Admitted
	if answer.Upstream == "" {
		q.source = q.source.forRun(answer)
		return false, true
	}
	if s, ok := g.sources.ownedSource(ref.Ecosystem, answer.Upstream); ok {
		q.source = s.forRun(answer)
		return true, true
	}
	r := ecosystem.Refusal{
		Cause: ecosystem.ByPolicy, What: ref.String(), Rule: "namespaces",
		Reason: "its name belongs to another upstream than those that are configured, and is asked of no other",
	}
	r.RequestID = g.failed(q, door.Failure{Package: q.refOf(q.route.Version), File: q.route.File, ResolvedBy: policy.ByNamespace, Rule: r.Rule, Reason: r.Reason})
	q.answerRefusal(r)
	return true, false
}

// askOwner asks the door whose a project is. If nothing that was read names it, something that was not read may:
// that is read first, before any upstream hears the name.
func (g *Gateway) askOwner(q *query) (door.OwnerAnswer, error) {
	file := q.route.Kind == ecosystem.RouteFile || q.route.Kind == ecosystem.RouteSidecar
	ask := door.OwnerAsk{Sandbox: q.sandbox, Package: q.refOf(""), Version: q.route.Version, MayWalk: true}
	ask.Metadata = q.route.Kind == ecosystem.RouteAttachment || q.route.Kind == ecosystem.RoutePass
	if q.route.Query {
		ask.Version = ""
	}
	ask.Asked = strings.Join([]string{q.route.Version, q.route.File, q.route.Release}, " ")
	answer, err := g.door.Owner(q.r.Context(), ask)
	g.guests.walkOf(q.sandbox, ask.Package.Ecosystem).wakeAsked()
	if err != nil || !answer.Unreached {
		return answer, err
	}
	if err := g.walker.reachPackage(q.r.Context(), q.subject, destination{ref: ask.Package, metadata: ask.Metadata, deep: file, now: q.route.Kind == ecosystem.RouteSidecar}); err != nil {
		return answer, err
	}
	ask.MayWalk = false
	return g.door.Owner(q.r.Context(), ask)
}
