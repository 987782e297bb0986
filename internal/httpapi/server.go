// Package httpapi speaks /v1: it decodes a request, calls the domain, encodes
// the answer, and maps fault categories to HTTP statuses once.
//
// Vocabulary: a *caller* is the host user at the other end of the socket; an
// *attachment* is a connection that was upgraded to channel frames.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/approval"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/template"
)

// maxBody bounds a request's JSON, a policy document included.
const maxBody = 16 << 20

// maxCreate bounds what makes a sandbox: the lockfiles are in it, in base64.
const maxCreate = maxBody + lockfile.MaxTotal/3*4

// Config is what the API serves. All fields are needed.
type Config struct {
	Sandboxes *sandbox.Manager
	Templates *template.Store
	Door      *admission.Controller
	Log       audit.Log
	// Approvals is the queue of held requests.
	Approvals *approval.Queue
	// Advisories are the imported facts about packages.
	Advisories *advisory.DB
	Version    api.Version
	Audit      Auditing
	// Built is called after a template was built.
	Built func(ctx context.Context)
	// Stop ends the daemon; force also destroys sandboxes.
	Stop   func(force bool) error
	Logger *slog.Logger
}

// Server is the API's handler; Busy tells the idle daemon whether it is in use.
type Server struct {
	cfg   Config
	mux   *http.ServeMux
	plans plans
	busy  atomic.Int64
	last  atomic.Int64 // unix nanoseconds of the last request's end
}

// New makes the handler.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, mux: http.NewServeMux()}
	s.last.Store(time.Now().UnixNano())
	for pattern, h := range map[string]handler{
		"GET /v1/version":                              s.version,
		"POST /v1/shutdown":                            s.shutdown,
		"POST /v1/sandboxes":                           s.createSandbox,
		"GET /v1/sandboxes":                            s.listSandboxes,
		"GET /v1/sandboxes/{id}":                       s.getSandbox,
		"DELETE /v1/sandboxes/{id}":                    s.destroySandbox,
		"GET /v1/sandboxes/{id}/holds":                 s.holds,
		"POST /v1/sandboxes/{id}/commands":             s.startCommand,
		"GET /v1/sandboxes/{id}/commands/{cmd}":        s.getCommand,
		"GET /v1/sandboxes/{id}/commands/{cmd}/attach": s.attach,
		"GET /v1/runs/{run}/summary":                   s.summary,
		"GET /v1/runs/{run}/suggest":                   s.suggest,
		"GET /v1/runs/{run}/plan":                      s.showPlan,
		"POST /v1/runs/{run}/plan":                     s.makePlan,
		"GET /v1/audit/records":                        s.records,
		"GET /v1/audit/stream":                         s.auditStream,
		"POST /v1/audit/query":                         s.auditQuery,
		"POST /v1/audit/reports/{name}":                s.auditReport,
		"POST /v1/audit/seal":                          s.sealAudit,
		"POST /v1/audit/erase":                         s.eraseAudit,
		"POST /v1/audit/key":                           s.rotateAuditKey,
		"GET /v1/templates":                            s.listTemplates,
		"GET /v1/templates/{name}":                     s.showTemplate,
		"POST /v1/templates/{name}":                    s.buildTemplate,
		"DELETE /v1/templates/{name}":                  s.removeTemplate,
		"GET /v1/advisories":                           s.advisories,
		"POST /v1/advisories":                          s.importAdvisories,
		"DELETE /v1/advisories":                        s.removeAllAdvisories,
		"DELETE /v1/advisories/{label}":                s.removeAdvisories,
		"GET /v1/advisories/check":                     s.checkPackage,
	} {
		s.mux.HandleFunc(pattern, s.serve(h))
	}
	s.approvalRoutes()
	return s
}

// handler answers a request or returns why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP routes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer func() {
		s.last.Store(time.Now().UnixNano())
		s.busy.Add(-1)
	}()
	s.mux.ServeHTTP(w, r)
}

// IdleSince is when the last request ended; the zero time while one is served.
func (s *Server) IdleSince() time.Time {
	if s.busy.Load() > 0 {
		return time.Time{}
	}
	return time.Unix(0, s.last.Load())
}

// serve turns a handler's error into a problem document.
func (s *Server) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil || errors.Is(err, errAnswered) {
			return
		}
		status := statusOf(err)
		if status == http.StatusInternalServerError {
			s.cfg.Logger.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "err", err)
		}
		writeProblem(w, status, sentence(err, status))
	}
}

// errAnswered: the handler has written an answer already.
var errAnswered = errors.New("answered")

func statusOf(err error) int {
	switch {
	case errors.Is(err, fault.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, fault.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, fault.ErrConflict):
		return http.StatusConflict
	case errors.Is(err, fault.ErrForbidden):
		return http.StatusForbidden
	case errors.Is(err, fault.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// sentence is what a person sees. The caller is the installation's own user, so
// an internal error's text may be shown.
func sentence(err error, status int) string {
	if status == http.StatusInternalServerError {
		return "something inside failed: " + err.Error()
	}
	return err.Error()
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	//nolint:errcheck,errchkjson // the client went away; there is nobody to tell
	json.NewEncoder(w).Encode(api.Problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return errAnswered // the status is out already
	}
	return nil
}

// readJSON decodes the body strictly.
func readJSON(r *http.Request, v any) error { return readLarge(r, v, maxBody) }

// readLarge is readJSON for a body of up to most bytes.
func readLarge(r *http.Request, v any, most int64) error {
	dec := json.NewDecoder(io.LimitReader(r.Body, most+1))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the request's body is not valid")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fault.Invalid("the request's body has more than one JSON value or is larger than %d bytes", most)
	}
	return nil
}
