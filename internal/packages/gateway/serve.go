package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// serveRequest answers a request. A request of a wrong form is answered before
// anything is asked of anybody.
func (g *Gateway) serveRequest(w http.ResponseWriter, r *http.Request) {
	conn := connOf(r.Context())
	if conn != nil {
		conn.unread.Handle(r)
	}
	if conn == nil || !g.flights.Begin() {
		http.Error(w, "the gateway is stopping", http.StatusServiceUnavailable)
		return
	}
	defer g.flights.End()
	ctx, over := g.lasting(r.Context())
	defer over()
	q := &query{subject: subject{sandbox: conn.sandbox}, w: w, r: r.WithContext(ctx), came: r, conn: conn, held: &heldAnswer{of: conn.memory}}
	defer q.held.giveBytes()
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status, reason := g.malformed(q); status != 0 {
		g.refuseForm(q, status, reason)
		return
	}
	g.dispatch(q)
}

// lasting is for all that comes of a request but the waiting for a person. That the client leaves does not end it:
// else a guest could choose, by leaving, what of an upstream's lies is found and recorded. It ends with the
// gateway. How many requests without a client there are is bounded as those with one are: the connection, its
// memory and its place among the sandbox's streams are given back when the request has ended.
func (g *Gateway) lasting(client context.Context) (ctx context.Context, over func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(client))
	stop := safego.When(g.flights.Life(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// malformed checks the form of a request, whatever it is for; status 0 is good.
func (g *Gateway) malformed(q *query) (status int, reason string) {
	r := q.r
	host := strings.TrimSuffix(r.Host, ":443")
	switch {
	case !g.guests.admitRequest(q.came.Context(), q.sandbox):
		q.orLeave() // it was not refused, and nothing was asked for it
		q.w.Header().Set("Retry-After", "1")
		return http.StatusTooManyRequests, "this run asks faster than the gateway answers one run"
	case !isRead(r) && !slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, r.Method):
		return q.notRead()
	case !strings.HasPrefix(r.RequestURI, "/") || r.URL.IsAbs() || r.URL.Host != "":
		return http.StatusBadRequest, "the gateway is no proxy: ask for a path"
	case r.Header.Get("Upgrade") != "":
		return http.StatusBadRequest, "the gateway speaks HTTP and nothing else"
	case host != q.conn.name || !g.names.hasName(host):
		return http.StatusBadRequest, "the Host is not the name that this connection was made for"
	case strings.HasPrefix(r.UserAgent(), upstream.UserAgent):
		return http.StatusLoopDetected, "the gateway is asked by a gateway: its upstream is itself"
	}
	return 0, ""
}

// unreadable checks that a request only reads: all do but those whose answer
// the protocol itself has.
func (q *query) unreadable() (status int, reason string) {
	r := q.r
	switch {
	case !isRead(r):
		return q.notRead()
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0 || r.Header.Get("Expect") != "":
		return http.StatusBadRequest, "a request to the gateway has no body"
	}
	return 0, ""
}

func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

func (q *query) notRead() (status int, reason string) {
	q.w.Header().Set("Allow", "GET, HEAD")
	return http.StatusMethodNotAllowed, "the gateway is read only: GET and HEAD"
}

// refuseForm answers what was not even understood, and records it.
func (g *Gateway) refuseForm(q *query, status int, reason string) {
	g.refuseUnread(q.sandbox, reason)
	q.answerProblem(status, reason)
}

// answerProblem answers with a problem that is not of a package, and is on record.
func (q *query) answerProblem(status int, reason string) {
	if q.r.ContentLength != 0 || q.r.Close {
		q.w.Header().Set("Connection", "close") // whatever its body is, it is not read
	}
	q.sendAnswer(ecosystem.Problem(status, ecosystem.Refusal{Cause: ecosystem.Malformed, Reason: reason}))
}

// dispatch finds out what the request is for, and who answers it.
func (g *Gateway) dispatch(q *query) {
	if q.conn.name == DownloadsName {
		if status, reason := q.unreadable(); status != 0 {
			g.refuseForm(q, status, reason)
			return
		}
		g.serveDownload(q)
		return
	}
	m := q.matchSources(g.names.placesAt(q.conn.name))
	if m.page == nil || m.page.route.Kind != ecosystem.RouteAnswered {
		if status, reason := q.unreadable(); status != 0 {
			g.refuseForm(q, status, reason)
			return
		}
	}
	switch {
	case m.page != nil:
		g.dispatchPage(m.page)
	case len(m.files) > 0:
		g.serveFile(q, m.files)
	case m.asked != nil:
		q.source = m.asked
		g.refuseRoute(q, m.failed)
	default: // not reached: every name but that of side downloads stands for a source
		g.refuseForm(q, http.StatusNotFound, "the gateway has no such page")
	}
}

// matches are what a request can be for, by the sources that share its host.
// The longest index path that fits decides; a file that no page can be is the
// first's that lists it.
type matches struct {
	page   *query
	files  []fileCandidate
	asked  *source // if nothing fits: who says why
	failed error
}

// matchSources asks every source that the host stands for.
func (q *query) matchSources(places []placed) (m matches) {
	path, rawQuery, _ := strings.Cut(q.r.RequestURI, "?")
	request := ecosystem.Request{Method: q.r.Method, Path: path, Query: rawQuery}
	var page, failed int
	for _, p := range places {
		fits := 0
		if strings.HasPrefix(path, p.place.Base) {
			fits = len(p.place.Base)
		}
		route, err := p.source.Protocol.Route(p.place, request)
		switch {
		case err != nil:
			if m.asked == nil || fits > failed {
				m.asked, m.failed, failed = p.source, err, fits
			}
		case route.Kind == ecosystem.RouteFile || route.Kind == ecosystem.RouteSidecar:
			m.files = append(m.files, fileCandidate{p.source, route, fits})
		case m.page == nil || fits > page:
			at := *q
			at.source, at.route = p.source, route
			m.page, page = &at, fits
		}
	}
	slices.SortStableFunc(m.files, func(a, b fileCandidate) int { return b.fits - a.fits })
	if m.page != nil && len(m.files) > 0 && m.files[0].fits > page {
		m.page = nil
	}
	return m
}

func (g *Gateway) dispatchPage(q *query) {
	switch q.route.Kind {
	case ecosystem.RouteRedirect:
		q.w.Header().Set("Location", q.route.Location)
		q.w.WriteHeader(http.StatusMovedPermanently)
	case ecosystem.RouteIndex:
		if _, ok := g.takeOwner(q); ok {
			g.serveIndex(q)
		}
	case ecosystem.RouteAttachment:
		g.serveAttachment(q)
	case ecosystem.RoutePass:
		g.servePass(q)
	case ecosystem.RouteAnswered:
		q.answerProtocol()
	case ecosystem.RouteRoot, ecosystem.RouteFile, ecosystem.RouteSidecar:
		q.answerRefusal(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway lists no projects; ask for one by its name"})
	}
}
