package gateway

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// query is one request of a guest, and the source that answers it.
type query struct {
	w       http.ResponseWriter
	r       *http.Request
	conn    *guestConn
	sandbox string
	source  *source
	route   ecosystem.Route
}

// serve answers a request. What is wrong with its form is answered before
// anything is asked of anybody.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	conn := connOf(r.Context())
	if conn == nil || !g.tasks.begin() {
		http.Error(w, "the gateway is stopping", http.StatusServiceUnavailable)
		return
	}
	defer g.tasks.end()
	q := &query{w: w, r: r, conn: conn, sandbox: conn.sandbox}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status, reason := g.malformed(q); status != 0 {
		if r.ContentLength != 0 || r.Close {
			w.Header().Set("Connection", "close") // whatever its body is, it is not read
		}
		q.send(ecosystem.Problem(status, ecosystem.Refusal{Cause: ecosystem.Malformed, Reason: reason}))
		return
	}
	g.dispatch(q)
}

// malformed checks the form of a request; status 0 is good.
func (g *Gateway) malformed(q *query) (status int, reason string) {
	r := q.r
	host := strings.TrimSuffix(r.Host, ":443")
	switch {
	case !g.guests.admit(q.sandbox):
		q.w.Header().Set("Retry-After", "1")
		return http.StatusTooManyRequests, "this run asks faster than the gateway answers one run"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		q.w.Header().Set("Allow", "GET, HEAD")
		return http.StatusMethodNotAllowed, "the gateway is read only: GET and HEAD"
	case !strings.HasPrefix(r.RequestURI, "/") || r.URL.IsAbs() || r.URL.Host != "":
		return http.StatusBadRequest, "the gateway is no proxy: ask for a path"
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0 || r.Header.Get("Upgrade") != "" || r.Header.Get("Expect") != "":
		return http.StatusBadRequest, "a request to the gateway has no body"
	case host != q.conn.name || !g.IsRegistry(host):
		return http.StatusBadRequest, "the Host is not the name that this connection was made for"
	case strings.HasPrefix(r.UserAgent(), upstream.UserAgent):
		return http.StatusLoopDetected, "the gateway is asked by a gateway: its upstream is itself"
	}
	return 0, ""
}

// dispatch finds the source and the route. Where two upstreams share a host
// the longest index path that fits is taken, and a file is the first's that
// lists it.
func (g *Gateway) dispatch(q *query) {
	path, rawQuery, _ := strings.Cut(q.r.RequestURI, "?")
	request := ecosystem.Request{Method: q.r.Method, Path: path, Query: rawQuery}
	var files []fileCandidate
	var pages *query
	var base string
	var failed error
	var asked *source
	for _, p := range g.names.Load().places[q.conn.name] {
		route, err := p.source.protocol.Route(p.place, request)
		asked = p.source
		switch {
		case err != nil:
			failed = err
		case route.Kind == ecosystem.RouteFile || route.Kind == ecosystem.RouteSidecar:
			files = append(files, fileCandidate{p.source, route})
		case pages == nil || len(p.place.Base) > len(base):
			at := *q
			at.source, at.route = p.source, route
			pages, base = &at, p.place.Base
		}
	}
	switch {
	case pages != nil:
		g.dispatchPage(pages)
	case len(files) > 0:
		g.serveFile(q, files)
	default:
		q.source = asked
		g.refuseRoute(q, failed)
	}
}

func (g *Gateway) dispatchPage(q *query) {
	switch q.route.Kind {
	case ecosystem.RouteRedirect:
		q.w.Header().Set("Location", q.route.Location)
		q.w.WriteHeader(http.StatusMovedPermanently)
	case ecosystem.RouteIndex:
		g.serveIndex(q)
	case ecosystem.RouteRoot, ecosystem.RouteFile, ecosystem.RouteSidecar, ecosystem.RouteAttachment, ecosystem.RoutePass, ecosystem.RouteAnswered:
		q.refuse(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: "the gateway lists no projects; ask for one by its name"})
	}
}

// refuseRoute answers what is no route. A name that is not canonical is
// recorded; nothing was sent upstream.
func (g *Gateway) refuseRoute(q *query, err error) {
	if !errors.Is(err, fault.ErrInvalid) {
		q.refuse(ecosystem.Refusal{Cause: ecosystem.NoSuchRoute, Reason: sentence(err)})
		return
	}
	r := ecosystem.Refusal{Cause: ecosystem.Malformed, Reason: sentence(err)}
	r.RequestID = g.failed(q, admission.Failure{
		Package: pkgref.Ref{Ecosystem: q.source.ecosystem()}, ResolvedBy: policy.ByCanonical, Reason: r.Reason,
	})
	q.refuse(r)
}

// failed records what the gateway itself refused, and gives the id to show.
// What can't be recorded is refused all the same, without an id.
func (g *Gateway) failed(q *query, f admission.Failure) string {
	f.Sandbox = q.sandbox
	f.Reason = ecosystem.Line(f.Reason)
	a, err := g.door.Failed(context.WithoutCancel(q.r.Context()), f)
	if err != nil {
		g.log.Error("a refusal could not be recorded", "sandbox", q.sandbox, "error", err)
		return ""
	}
	return a.RequestID
}

// sentence is what a person may read of an error: never the upstream's text.
func sentence(err error) string {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f.Sentence
	}
	return "something inside the gateway failed"
}

// causeOf sorts an error into what it means to a client.
func causeOf(err error) ecosystem.Cause {
	switch {
	case errors.Is(err, fault.ErrNotFound):
		return ecosystem.Missing
	case errors.Is(err, fault.ErrUnavailable):
		return ecosystem.Unreachable
	case errors.Is(err, errStrangers):
		return ecosystem.ByPolicy
	}
	return ecosystem.Unverified
}
