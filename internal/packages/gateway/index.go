package gateway

import (
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// serveIndex answers with a project's page, judged for the guest's run.
func (g *Gateway) serveIndex(q *query) {
	ref := pkgref.Ref{Ecosystem: q.source.Ecosystem(), Name: q.route.Project}
	settle, err := g.askNames(q)
	if err != nil {
		g.refusePage(q, ref, err)
		return
	}
	result := nameRefused
	defer func() { settle(result) }()
	var out *pages.Document
	var j pages.Judged
	for range 2 { // what is replaced or evicted between two steps is had again, once
		var p *pages.Page
		if p, err = g.pages.Page(q.r.Context(), q.source.Source, q.route.Project); err != nil {
			g.refusePage(q, ref, err)
			return
		}
		if len(p.Index.Files) == 0 && len(p.Index.LeftOut) > 0 {
			g.refusePage(q, ref, fault.Invalid("none of its %d files can be served: of the first, %s", len(p.Index.LeftOut), p.Index.LeftOut[0].Reason))
			return
		}
		if out, j, err = g.rendered(q, p); !errors.Is(err, cache.ErrRowsGone) {
			break
		}
	}
	if err != nil && q.r.Context().Err() != nil {
		return // the gateway is stopping
	}
	if err != nil {
		g.log.Error("an index page could not be judged", "sandbox", q.sandbox, "project", q.route.Project, "error", err)
		q.answerRefusal(undecided(ref, err))
		return
	}
	result = outcomeOfPage(j)
	switch {
	case out.Missing != nil:
		g.refusePage(q, ref, out.Missing)
	case out.Refused != nil:
		q.refuseDecision(out.Refused.Ref.String(), out.Refused.Decision, j.RequestID())
	case g.holdBytes(q, out.Kept()):
		q.sendPage(out, j.RequestID())
	}
}

// outcomeOfPage is the outcome of a page's project: that of the best of its files.
func outcomeOfPage(j pages.Judged) outcome {
	result := nameRefused
	for _, d := range j.Decisions() {
		result = max(result, outcomeOf(d))
	}
	return result
}

// rendered asks the door about a page and gives it rendered under its verdicts.
func (g *Gateway) rendered(q *query, p *pages.Page) (*pages.Document, pages.Judged, error) {
	ctx := q.r.Context()
	j, err := g.pages.Judge(ctx, pages.Reader{Sandbox: q.sandbox}, q.source.Source, q.route.Project, p)
	if err != nil {
		return nil, j, err
	}
	if err := g.pages.TellEdges(ctx, q.sandbox, j); err != nil {
		return nil, j, err
	}
	out, err := g.pages.Render(ctx, j, q.r, q.route.Release)
	return out, j, err
}

// sendPage lets clients keep the page and ask each time whether it still holds;
// one with a notice is not kept, or the notice would be shown without it. id is
// of the record of what is withheld.
func (q *query) sendPage(out *pages.Document, id string) {
	q.w.Header().Set("Cache-Control", "no-cache")
	q.setNotice(out.Notice, id)
	out.Send(q.w, q.r)
}

func (q *query) setNotice(withheld *pages.Withheld, id string) {
	n, ok := q.source.Protocol.(ecosystem.Noticer)
	if !ok || withheld == nil {
		return
	}
	fields := n.Notice(ecosystem.Refusal{
		Route: q.route.Kind, Cause: ecosystem.ByPolicy, What: withheld.Ref.String(), Reason: withheld.Decision.Reason,
		Rule: withheld.Decision.Rule, Suggest: withheld.Decision.Suggest, RequestID: id,
	})
	for name, value := range fields {
		q.w.Header().Set(name, ecosystem.Line(value))
	}
	if len(fields) > 0 {
		q.w.Header().Set("Cache-Control", "no-store")
	}
}
