package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// serveIndex answers with a project's page, judged for the guest's run.
func (g *Gateway) serveIndex(q *query) {
	ref := pkgref.Ref{Ecosystem: q.source.ecosystem(), Name: q.route.Project}
	settle, err := g.guests.ask(q.sandbox, ref.String(), q.admitted, q.r.Context().Done())
	if err != nil {
		g.refusePage(q, ref, err)
		return
	}
	kin := stranger
	defer func() { settle(kin) }()
	var out *rendered
	var a door.IndexAnswer
	for range 2 { // what is replaced or evicted between two steps is had again, once
		var p *page
		if p, err = g.page(q.r.Context(), q.source, q.route.Project); err != nil {
			g.refusePage(q, ref, err)
			return
		}
		if len(p.index.Files) == 0 && len(p.index.LeftOut) > 0 {
			g.refusePage(q, ref, fault.Invalid("none of its %d files can be served: of the first, %s", len(p.index.LeftOut), p.index.LeftOut[0].Reason))
			return
		}
		if out, a, err = g.judged(q, p); !errors.Is(err, cache.ErrRowsGone) {
			break
		}
	}
	if err != nil && q.r.Context().Err() != nil {
		return // nobody is there to be answered; the rendering goes on
	}
	if err != nil {
		g.log.Error("an index page could not be judged", "sandbox", q.sandbox, "project", q.route.Project, "error", err)
		q.refuse(undecided(ref, err))
		return
	}
	kin = out.kin
	switch {
	case out.missing != nil:
		g.refusePage(q, ref, out.missing)
	case out.refused != nil:
		q.refuseDecision(out.refused.ref.String(), out.refused.decision, a.RequestID)
	default:
		q.sendPage(out, a.RequestID)
	}
}

// refusePage answers for a page that there is not, and records why.
func (g *Gateway) refusePage(q *query, ref pkgref.Ref, err error) {
	if q.r.Context().Err() != nil {
		return // nobody is there to be answered, and nothing was refused
	}
	g.log.Warn("an index page is refused", "sandbox", q.sandbox, "project", q.route.Project, "error", err)
	r := ecosystem.Refusal{Cause: causeOf(err), What: ref.String(), Reason: sentence(err)}
	r.RequestID = g.failed(q, door.Failure{
		Rule:    ruleOf(r.Cause),
		Package: ref, SourceURL: q.source.protocol.IndexAsk(q.source.index, ref.Name).URL, ResolvedBy: policy.ByIntegrity, Reason: r.Reason,
	})
	q.refuse(r)
}

// judged asks the door about a page and gives it rendered under its verdicts.
func (g *Gateway) judged(q *query, p *page) (*rendered, door.IndexAnswer, error) {
	ctx := q.r.Context()
	p, a, err := g.verdicts(ctx, q, p)
	if err != nil {
		return nil, a, err
	}
	if err := g.listEdges(ctx, q, p, a); err != nil {
		return nil, a, err
	}
	out, err := g.rendering(ctx, q, p, a)
	return out, a, err
}

// verdicts asks the door about a page, by its digest first. If the files' times
// were found out for that the page is given with them.
func (g *Gateway) verdicts(ctx context.Context, q *query, p *page) (*page, door.IndexAnswer, error) {
	s, project := q.source, q.route.Project
	ask := door.IndexAsk{
		Sandbox: q.sandbox, Package: pkgref.Ref{Ecosystem: s.ecosystem(), Name: project},
		SourceURL: p.url, Upstream: s.index, IndexDigest: p.digest, Walk: q.walks,
	}
	if t, ok := s.protocol.(ecosystem.ToolchainNamer); ok {
		ask.Toolchain = t.Toolchain(project)
	}
	a, err := g.door.Index(ctx, ask)
	if err == nil && a.NeedFiles && a.NeedTimes {
		p = g.timed(ctx, s, project, p)
		ask.IndexDigest = p.digest
	}
	if err == nil && a.NeedFiles {
		ask.Files = p.doorFiles()
		a, err = g.door.Index(ctx, ask)
	}
	switch {
	case err != nil:
		return p, a, err
	case a.NeedFiles || a.Epoch == "":
		return p, a, errors.New("the door gave no verdicts")
	}
	return p, a, checkAnswer(a, len(p.index.Files))
}

// checkAnswer makes sure that the door judged each of the files.
func checkAnswer(a door.IndexAnswer, files int) error {
	if len(a.OfFile) != files {
		return fmt.Errorf("the door judged %d of %d files", len(a.OfFile), files)
	}
	for _, v := range a.OfFile {
		if v < 0 || v >= len(a.Verdicts) {
			return errors.New("the door gave a file a verdict that there is not")
		}
	}
	return nil
}
