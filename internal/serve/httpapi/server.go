// Package httpapi speaks /v1: it lets a request in or turns it away, decodes it,
// calls the domain, encodes the answer, and maps fault categories to HTTP statuses
// once.
//
// routes() says which routes are for host users of the Unix socket and which for tokens. A token
// sees its own: sandboxes and snapshots that were made with it, and runs of which all sandboxes
// were. A connection that attaches is upgraded to channel frames.
package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/attest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/jscall"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// maxBody bounds a request's JSON, a policy document included.
const maxBody = 16 << 20

// maxCreate bounds what makes a sandbox: the lockfiles are in it, in base64.
const maxCreate = maxBody + lockfile.MaxTotal/3*4

// Sandboxes is what /v1 needs of the sandboxes' manager. *sandbox.Manager is one.
type Sandboxes interface {
	backend.Sandboxes

	// Settle waits for the records of a run's ended commands.
	Settle(ctx context.Context, run string) error
	// PolicyText returns the document of a digest.
	PolicyText(digest string) ([]byte, error)
	// Prove has a probe try to get past each control of a sandbox, in a twin.
	Prove(ctx context.Context, id string) (attest.Report, error)
}

var _ Sandboxes = (*sandbox.Manager)(nil)

// Config is what the API serves. Where a part is missing, its routes answer 503.
type Config struct {
	Sandboxes Sandboxes
	Templates *template.Store
	Door      *admission.Controller
	// Calls runs code without a sandbox.
	Calls *jscall.Desk
	Log   audit.Log
	// OwnerKeys tell whose runs are of which the log has forgotten it.
	OwnerKeys audit.OwnerKeys
	// Approvals is the queue of held requests.
	Approvals *approval.Queue
	// Releases looks into the files of requests; nil: nobody does.
	Releases Releases
	// Advisories are the imported facts about packages.
	Advisories *advisory.DB
	// Tokens are the clients over the network; nil: there are none, and only
	// callers on the Unix socket are served.
	Tokens *token.Book
	// Policies are the named ones.
	Policies *namedpolicy.Store
	// Seen is asked about a file of the host that a caller on the Unix socket names as the source of a document that
	// decides: an error if an agent could have written it and no person has seen it as it is. nil: nobody is asked.
	Seen func(ctx context.Context, what, source string, document []byte) error
	// Homes are what users keep from one sandbox to the next; nil: nothing.
	Homes *agenthome.Shelf
	// Secrets are the declared ones; nil: there are none.
	Secrets *secret.Broker
	// Room bounds what the requests of tokens hold; nil: one of its own.
	Room *backend.Room
	// Underway counts the requests of tokens; nil: one of its own.
	Underway *backend.Underway
	Version  api.Version
	Audit    Auditing
	Clock    Clock
	// PositionKey has numbers of events and records concealed from tokens; it must be the same
	// for every daemon of the installation. nil: one of this process.
	PositionKey []byte
	// Built is called after a template was built.
	Built func(ctx context.Context)
	// Reload reads the configuration file again, for somebody, and takes what can be taken.
	Reload func(ctx context.Context, by string) (api.ConfigReload, error)
	// Stop ends the daemon; force also destroys sandboxes.
	Stop func(force bool) error
	// HandOver ends the daemon, and leaves its sandboxes to the next one.
	HandOver func()
	Logger   *slog.Logger
	// Untaken is how long a client over the network may take nothing of an answer, and any client of a file, before
	// that is broken off; 0: httphead.Untaken.
	Untaken time.Duration
}

// desk is what the routes share: the parts of the daemon, and whose is what.
type desk struct {
	cfg       Config
	plans     plans
	owners    owners
	taking    taking
	listeners listeners
	positions positions
	logReads  *fairqueue.Shares
}

// Server is the API's handler; Busy tells the idle daemon whether it is in use.
type Server struct {
	*desk

	mux      *http.ServeMux
	refusals refusals
	busy     atomic.Int64
	last     atomic.Int64 // unix nanoseconds of the last request's end
}

// New makes the handler.
func New(cfg Config) *Server {
	if cfg.Room == nil {
		cfg.Room = backend.NewRoom()
	}
	if cfg.Underway == nil {
		cfg.Underway = backend.NewUnderway()
	}
	cfg.Untaken = cmp.Or(cfg.Untaken, httphead.Untaken)
	s := &Server{desk: &desk{cfg: cfg, positions: newPositions(cfg.PositionKey), logReads: fairqueue.New(readsOfLog())}, mux: http.NewServeMux()}
	s.last.Store(time.Now().UnixNano())
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.pattern, s.serveRoute(r))
	}
	s.mux.HandleFunc("/", noRoute)
	return s
}

// routeHandler answers a request or returns why not.
type routeHandler func(w http.ResponseWriter, r *http.Request) error

// ServeHTTP routes.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if staysOnly(r) {
		s.mux.ServeHTTP(w, r)
		return
	}
	s.busy.Add(1)
	defer func() {
		s.last.Store(time.Now().UnixNano())
		s.busy.Add(-1)
	}()
	s.mux.ServeHTTP(w, r)
}

// staysOnly tells that a request asks for nothing: its client is there as a sandbox's, comes back by
// itself to the daemon that follows, and is no reason for this one to go on.
func staysOnly(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/holds") && r.URL.Query().Get("stay") != ""
}

// IdleSince is when the last request ended; the zero time while one is served.
func (s *Server) IdleSince() time.Time {
	if s.busy.Load() > 0 {
		return time.Time{}
	}
	return time.Unix(0, s.last.Load())
}

// serveRoute lets a request in, and turns an error into a problem document.
func (s *Server) serveRoute(to route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		paceBody(w, r)
		entered, leave, err := s.enterRequest(r, to)
		defer leave()
		if err == nil {
			err = s.handle(w, entered, to)
		}
		if err == nil || errors.Is(err, errAnswered) {
			return
		}
		status := statusOf(err)
		if status >= http.StatusInternalServerError { // what caused it is told to nobody else
			s.cfg.Logger.ErrorContext(r.Context(), "a request failed", "path", r.URL.Path, "err", err)
		}
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="cofferdam"`)
		}
		writeProblem(w, problemOf(err, status, whoseIs(entered)))
	}
}

// handle has a route answer a request that was let in. A client over the network that takes nothing of its answer for
// long, a stream or what was upgraded included, is cut off: it may be gone without a word. A stranger, who has a place of all
// strangers', is sooner.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, to route) error {
	switch by := whoseIs(r); {
	case by == nil:
		w = &httphead.Answer{ResponseWriter: w, Within: min(s.cfg.Untaken, httphead.Uncounted)}
	case by.token != nil:
		w = &httphead.Answer{ResponseWriter: w, Within: s.cfg.Untaken}
	}
	during, stop, err := s.during(r)
	if err != nil {
		return err
	}
	defer stop()
	return to.handle(w, during)
}

// whoseIs is the caller of a request; nil if it was not let in.
func whoseIs(r *http.Request) *caller {
	if r == nil {
		return nil
	}
	c, err := callerOf(r.Context())
	if err != nil {
		return nil
	}
	return &c
}

// noRoute answers where there is none.
func noRoute(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, api.Problem{
		Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
		Detail: fmt.Sprintf("/v1 has no route %s %.200q; GET /v1/openapi.yaml lists the routes", r.Method, r.URL.Path),
	})
}

// errAnswered: the handler has written an answer already.
var errAnswered = backend.ErrAnswered

func statusOf(err error) int {
	if errors.Is(err, errUnknown) {
		return http.StatusUnauthorized
	}
	return fault.KindOf(err).Status
}

// problemOf is what a person sees. The caller on the Unix socket is the
// installation's own user, so all of an error's text may be shown there.
func problemOf(err error, status int, by *caller) api.Problem {
	p := api.Problem{Title: http.StatusText(status), Status: status, Detail: errorSentence(err, status)}
	switch remote := by == nil || by.token != nil; {
	case remote && status == http.StatusInternalServerError:
		p.Detail = "something inside failed; the daemon's log says what"
	case remote:
		p.Detail = withoutCauses(err)
	}
	p.RetrySeconds = backend.RetrySeconds(err)
	return p
}

func errorSentence(err error, status int) string {
	if status == http.StatusInternalServerError {
		return "something inside failed: " + err.Error()
	}
	return err.Error()
}

// withoutCauses is an error's sentences without what caused them: the operator's
// paths and numbers are not for clients over the network. A mistake in their own input is.
func withoutCauses(err error) string {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok || f.Cause == nil {
		return err.Error()
	}
	if _, deeper := errors.AsType[*fault.Fault](f.Cause); deeper {
		return f.Sentence + ": " + withoutCauses(f.Cause)
	}
	var path *fs.PathError
	var call *os.SyscallError
	if errors.Is(f.Category, fault.ErrInvalid) && !errors.As(f.Cause, &path) && !errors.As(f.Cause, &call) {
		return f.Error()
	}
	return f.Sentence
}

func writeProblem(w http.ResponseWriter, p api.Problem) {
	if p.RetrySeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetrySeconds))
	}
	backend.WriteError(w, "application/problem+json", p.Status, p)
}

// writeJSON answers a request with a whole value.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, v any) error {
	return backend.WriteJSON(r.Context(), w, status, v)
}

// readJSON decodes the body strictly.
func readJSON(r *http.Request, v any) error { return readLarge(r, v, maxBody) }

// readLarge reads, as readJSON does, a body of up to most bytes.
func readLarge(r *http.Request, v any, most int64) error {
	empty, err := backend.ReadJSON(r, most, v)
	if empty {
		return fault.Invalid("the request has no body; send one, as GET /v1/openapi.yaml says")
	}
	return err
}
