package gateway

import (
	"errors"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// Each part of a request's own text that goes upstream could carry something out of a sandbox.
// So each text either names what a page is known to list, or it is counted: askNames
// counts a project's name, and the version or query that a protocol asks for by its
// address; listed holds a version that is asked for in another way to the page.

// askNames begins a query that has an upstream hear what the guest has named. done settles
// how it ended.
func (g *Gateway) askNames(q *query) (done func(outcome), err error) {
	n := naming{project: q.refOf("").String(), admitted: q.admitted, text: q.freeText()}
	ctx := q.r.Context()
	if n.text != "" {
		if p := g.pages.Have(ctx, q.source.Source, q.route.Project); p != nil && p.Lists(n.text) {
			n.text = ""
		}
	}
	done, err = g.guests.beginAsk(q.sandbox, n, ctx.Done())
	if !errors.Is(err, errRefusedNames) || n.text == "" || !g.guests.mayName(q.sandbox, n) {
		return done, err
	}
	// There is room for nothing that leads nowhere; what the page lists does not.
	p, unread := g.pages.Page(ctx, q.source.Source, q.route.Project)
	if unread != nil || !p.Lists(n.text) {
		return nil, err
	}
	n.text = ""
	return g.guests.beginAsk(q.sandbox, n, ctx.Done())
}

// freeText is what of the request's text an upstream would hear beside the project's name.
// Where files have no addresses, theirs are the page's, and a version that is asked for in
// another way is held to the page by listed.
func (q *query) freeText() string {
	if _, addressed := q.source.Protocol.(ecosystem.Addresser); !addressed {
		return ""
	}
	switch q.route.Kind { //nolint:exhaustive // the others name a project, and nothing else that leaves
	case ecosystem.RouteFile, ecosystem.RouteAttachment, ecosystem.RoutePass:
		return q.route.Version
	}
	return ""
}

// listed holds what is passed through about a release to the project's page, unless it was
// counted: a version that no page lists would tell its text to the upstream, and nothing
// else.
func (g *Gateway) listed(q *query) error {
	if q.route.Version == "" || q.freeText() != "" {
		return nil
	}
	p, err := g.pages.Page(q.r.Context(), q.source.Source, q.route.Project)
	if err != nil {
		return err
	}
	if !p.Lists(q.route.Version) {
		return fault.New(fault.ErrNotFound, "the project has no such release")
	}
	return nil
}
