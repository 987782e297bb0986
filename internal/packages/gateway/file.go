package gateway

import (
	"context"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/delivery"
)

// fileCandidate is a source that may have the file that was asked for.
type fileCandidate struct {
	source *source
	route  ecosystem.Route
	fits   int // bytes of the path that are its index's
}

// serveFile answers with a file or its sidecar. The client need not have asked
// for the index: what the file is, is found out here.
func (g *Gateway) serveFile(q *query, candidates []fileCandidate) {
	var failed error
	for _, c := range candidates {
		q.source, q.route = c.source, c.route
		owned, ok := g.takeOwner(q)
		if !ok {
			return
		}
		l, settle, err := g.findFile(q)
		if err == nil {
			g.serveFound(q, l, settle)
			return
		}
		failed = err
		if owned {
			break // a private name is looked for nowhere else
		}
	}
	g.refuseFile(q, located{subject: q.subject, ref: q.refOf(q.route.Version)}, failed)
}

// findFile locates the file. Without an error the caller settles the asking once it knows
// whether the file may be had: that a name exists tells nothing of that, since
// anybody can make names that exist.
func (g *Gateway) findFile(q *query) (l located, settle func(outcome), err error) {
	settle, err = g.askNames(q)
	if err != nil {
		return l, nil, err
	}
	if l, err = g.locator.findSubject(q.r.Context(), q.subject); err != nil {
		settle(nameRefused)
	}
	return l, settle, err
}

// serveFound asks for the verdict before anything is fetched. A file that waits for a person is
// gone on with: they are shown what the verified bytes say.
func (g *Gateway) serveFound(q *query, l located, settle func(outcome)) {
	answer, err := g.verdict(q, l)
	settle(outcomeOf(answer.Decision)) // of an error's zero decision: refused
	switch {
	case err != nil:
		g.refuseUndecided(q, l.ref, err)
	case q.route.Kind == ecosystem.RouteSidecar && l.of != nil:
		g.refuseFile(q, l, fault.New(fault.ErrNotFound, "what is built of a source distribution has no metadata beside it"))
	case q.route.Kind == ecosystem.RouteSidecar && answer.Decision.Outlined():
		g.serveOutline(q, l)
	case !answer.Decision.Shown():
		q.refuseAnswer(l.ref, answer)
	case q.route.Kind == ecosystem.RouteSidecar:
		g.serveSidecar(q, l, answer.Decision)
	case l.of != nil:
		g.serveBuilt(q, l, answer.Decision)
	default:
		g.serveArtifact(q, l, answer.Decision)
	}
}

// verdict asks whether the file may be had. The package that requires it may not have been read: then
// that is read first.
func (g *Gateway) verdict(q *query, l located) (door.Answer, error) {
	ctx := q.r.Context()
	resolves := q.route.Kind == ecosystem.RouteSidecar
	ask := func(mayWalk bool) (door.Answer, error) {
		if resolves {
			return g.door.Outline(ctx, door.OutlineAsk{FileAsk: l.fileAsk(), MayWalk: mayWalk})
		}
		return g.door.Judge(ctx, door.JudgeAsk{FileAsk: l.fileAsk(), MayWalk: mayWalk})
	}
	answer, err := ask(true)
	if err != nil || !answer.Unreached {
		return answer, err
	}
	if err := g.walker.reachPackage(ctx, l.subject, destination{ref: l.ref, deep: true, now: resolves, published: l.file.Published}); err != nil {
		return door.Answer{}, err
	}
	return ask(false)
}

// askAgain asks again, knowing more, and refuses what is denied.
func (g *Gateway) askAgain(q *query, ref pkgref.Ref, ask door.JudgeAsk) (d policy.Decision, ok bool) {
	answer, err := g.door.Judge(q.r.Context(), ask)
	return g.orRefused(q, ref, answer, err)
}

// orRefused refuses what is not shown.
func (g *Gateway) orRefused(q *query, ref pkgref.Ref, answer door.Answer, err error) (d policy.Decision, ok bool) {
	switch {
	case err != nil:
		g.refuseUndecided(q, ref, err)
	case !answer.Decision.Shown():
		q.refuseAnswer(ref, answer)
	default:
		return answer.Decision, true
	}
	return answer.Decision, false
}

// serveArtifact sends a file: verified, looked into, recorded, and only then.
func (g *Gateway) serveArtifact(q *query, l located, verdict policy.Decision) {
	ctx := q.r.Context()
	bytes, kept, err := g.artifact(q, l)
	if err != nil {
		g.refuseFile(q, l, err)
		return
	}
	defer bytes.Close() //nolint:errcheck // read only
	d, err := g.inspections.inspectFile(ctx, l, bytes)
	if err == nil {
		err = d.servable()
	}
	if err != nil {
		g.refuseFile(q, l, err)
		return
	}
	v, stricter := fileOf(l, bytes, kept, d)
	head := q.r.Method == http.MethodHead
	if stricter || head {
		ask := door.JudgeAsk{FileAsk: v.fileAsk()}
		if verdict.Unadmitted { // a person may be shown what comes of it
			ask.Evidence, ask.Paths = g.evidence(ctx, v.located, v.found), v.filePaths()
		}
		var ok bool
		if verdict, ok = g.askAgain(q, v.ref, ask); !ok {
			return
		}
	}
	q.orLeave()
	if len(d.Requirements) > 0 {
		if err := g.door.Edges(ctx, v.sandbox, v.ref, d.Requirements); err != nil {
			g.refuseUndecided(q, v.ref, err)
			return
		}
	}
	if head { // shown above, and no byte is served
		delivery.Head(q.w, q.r, bytes)
		return
	}
	g.serveRecorded(q, v, verdict.Effect == policy.Hold)
}

// artifact gives the file's verified bytes; kept tells that the cache had them. A
// cached copy that was changed on the disk is an incident even if a good one can be
// fetched.
func (g *Gateway) artifact(q *query, l located) (bytes *artifacts.Verified, kept bool, err error) {
	w := l.wanted()
	bytes, spoilt, err := g.artifacts.Cached(w)
	if spoilt {
		g.failed(q, door.Failure{
			Package: l.ref, File: l.file.Name, SourceURL: l.url, ResolvedBy: policy.ByIntegrity,
			Reason: "the cached copy was changed on the disk; it was set aside and is fetched again",
		})
	}
	if artifacts.Absent(err) {
		bytes, err = g.artifacts.Fetch(q.r.Context(), w)
		return bytes, false, err
	}
	return bytes, err == nil, err
}

// evidence is what is known about a file that waits, for who answers.
func (g *Gateway) evidence(ctx context.Context, l located, found described) *evidence.Evidence {
	e := g.inspections.evidence(ctx, l.source, g.pages.Have(ctx, l.source.Source, l.route.Project), l.route.Project, l.file, l.row)
	e = WithInside(e, found.Scripts, found.Findings, found.Inside, found.Said)
	return &e
}
