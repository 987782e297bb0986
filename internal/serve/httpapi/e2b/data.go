package e2b

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/alarms"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/httphead"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/interpreter"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// Access tells who may use a sandbox's data plane.
type Access interface {
	// Token is the sandbox's access token; "" if it has none, and nobody may then.
	Token(sandbox string) string
	// Traffic is the token that a request to the sandbox's own ports must bring; ""
	// where these are open to all who reach the daemon.
	Traffic(sandbox string) string
	// Contexts is the token that a request about contexts may bring in place of the
	// sandbox's: clients bring to these no other. "": none.
	Contexts(sandbox string) string
}

// Clients tells whether a token, by its id, still is one; *token.Book is one.
type Clients interface {
	Live(id string) bool
	// Now is the time by which what was signed to end has ended.
	Now() time.Time
	During(ctx context.Context, id string) (during context.Context, stop func())
}

// DataConfig is what the data plane works with. All fields but Domain are needed.
type DataConfig struct {
	Sandboxes backend.Sandboxes
	Access    Access
	Clients   Clients
	// Domain is where PORT-ID.Domain names a port of a sandbox; "": only headers do.
	Domain string
	// Interpreter runs cells of code; nil: nothing does.
	Interpreter *interpreter.Interpreter
	// Room bounds what the requests of tokens hold; nil: one of its own.
	Room *backend.Room
	// Underway counts the requests of tokens; nil: one of its own.
	Underway *backend.Underway
	// Alarms is the log, as far as clients are told of alarms in it; nil: they are told of none.
	Alarms alarms.Log
	Log    *slog.Logger
	// Visits counts the visits of published ports; nil: one of its own. It is another than Underway, for a
	// visitor need not have a token: no strangers leave the tokens fewer requests.
	Visits *backend.Underway
	// Untaken is how long a client may take nothing of a file, or of what a port answers, before that
	// is broken off; 0: httphead.Untaken.
	Untaken time.Duration
}

// Data is the data plane's handler: everything that is done in one sandbox. It
// must sit on a server's own connections (streams set deadlines on them).
type Data struct {
	cfg      DataConfig
	routes   *http.ServeMux
	cells    *http.ServeMux // of the interpreter's port
	launched launches
	alarms   *alarmNews
	watchers watchers
	ports    http.RoundTripper
	codecs   map[string]*codec // by the paths of calls
}

// NewData makes the handler.
func NewData(cfg DataConfig) *Data {
	if cfg.Room == nil {
		cfg.Room = backend.NewRoom()
	}
	if cfg.Underway == nil {
		cfg.Underway = backend.NewUnderway()
	}
	if cfg.Visits == nil {
		cfg.Visits = backend.NewUnderway()
	}
	cfg.Untaken = cmp.Or(cfg.Untaken, httphead.Untaken)
	d := &Data{cfg: cfg, routes: http.NewServeMux(), ports: portTransport(cfg.Sandboxes), codecs: newCodecs(), alarms: newAlarmNews(cfg.Alarms)}
	d.routes.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	d.routes.HandleFunc("GET /metrics", d.serveREST(d.metrics))
	d.routes.HandleFunc("GET /files", d.serveREST(d.download))
	d.routes.HandleFunc("POST /files", d.serveREST(d.upload))
	d.routes.HandleFunc("POST /files/compose", d.serveREST(d.compose))
	cellRoutes{d}.registerRoutes()
	d.processRoutes()
	d.filesystemRoutes()
	d.routes.HandleFunc("/", d.serveREST(func(_ http.ResponseWriter, r *call) error {
		return refuseWith(codeUnimplemented, "this daemon has no %s %.100q for sandboxes", r.Method, r.URL.Path)
	}))
	return d
}

// call is a request to a sandbox that was let through.
type call struct {
	*http.Request
	box   *sandbox.Sandbox
	id    string
	codec *codec // nil: its messages are JSON
}

// ServeHTTP routes a request to its sandbox.
func (d *Data) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, counted, err := d.reachTarget(r)
	if err != nil {
		writeRefusal(w, r, err)
		return
	}
	defer counted()
	box, err := d.living(to.sandbox)
	if err != nil {
		writeGone(w, d, to.sandbox)
		return
	}
	switch to.port {
	case dataPort, interpreterPort:
	default:
		r.Pattern = "a port"
		during, stop := d.during(r, box)
		defer stop()
		d.servePort(w, during, box, to)
		return
	}
	routes, authorize := d.routes, d.authorize
	if to.port == interpreterPort {
		routes, authorize = d.cells, cellRoutes{d}.authorize
	}
	if err := authorize(r, to.sandbox); err != nil {
		writeRefusal(w, r, err)
		return
	}
	if r.URL.Path != healthPath { // which anybody may ask for, and which is answered at once
		d.cfg.Sandboxes.Touch(to.sandbox)
	}
	d.serveCall(w, r, routes, box, to)
}

// serveCall has a request answered that was let through to a sandbox.
func (d *Data) serveCall(w http.ResponseWriter, r *http.Request, routes http.Handler, box *sandbox.Sandbox, to target) {
	w = &httphead.Answer{ResponseWriter: w, Within: d.cfg.Untaken} // streams included: over HTTP/1 nobody else ends them
	d.alarms.watchAlarms(to.sandbox, d.isGone)
	during, stop := d.during(r, box)
	defer stop()
	if r.URL.Path != healthPath { // which anybody may ask for, so that it takes nothing of its owner's room
		ctx, leave := d.cfg.Room.Enter(during.Context(), roomOf(box))
		defer leave()
		during = during.WithContext(ctx)
		if err := backend.Buffered(ctx, during); err != nil {
			writeRefusal(w, r, err)
			return
		}
		backend.AwaitThaw(ctx, box) // its owner's room has it meanwhile, and it ends with the owner's token
	}
	in := withCall(during, &call{Request: during, box: box, id: to.sandbox})
	defer func() { r.Pattern = in.Pattern }() // for who counts requests by their route
	routes.ServeHTTP(w, in)
}

// reachTarget finds out whom a request is for, counts it in, and wakes a sandbox that sleeps. Without an error counted is
// called once, when the request is over.
func (d *Data) reachTarget(r *http.Request) (to target, counted func(), err error) {
	if to, err = d.target(r); err != nil {
		return to, nil, err
	}
	if err := d.checkOwner(to.sandbox); err != nil {
		return to, nil, err
	}
	if counted, err = d.countRequest(r, to); err != nil {
		return to, nil, err
	}
	if err := d.wakeTarget(r, to); err != nil {
		counted()
		return to, nil, err
	}
	return to, counted, nil
}

const healthPath = "/health"

// authorize makes sure that the request brings what the data plane asks for: the
// sandbox's token, or for a file a signature that was made with it.
func (d *Data) authorize(r *http.Request, id string) error {
	if r.URL.Path == healthPath {
		return nil // it tells nothing but that the sandbox lives, and clients ask without the token
	}
	token, given := d.cfg.Access.Token(id), r.Header.Get(headerAccess)
	switch {
	case token == "":
	case given != "":
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) == 1 {
			return nil
		}
	case isSigned(r):
		return checkSignature(r, token, d.cfg.Clients.Now())
	}
	return refuseWith(codeUnauthenticated, "the access token is missing or not this sandbox's: X-Access-Token takes what create or connect answered as envdAccessToken")
}

// checkOwner makes sure that what a client's token made serves nobody once the token
// is revoked or expired: whoever has it has the access tokens of its sandboxes, too.
func (d *Data) checkOwner(id string) error {
	box, err := backend.Find(d.cfg.Sandboxes, id, backend.AnyOwnersViewer)
	if err != nil {
		return nil //nolint:nilerr // that it is not there is told by who looks for it next
	}
	if owner := box.Info().Owner.Token; owner != "" && !d.cfg.Clients.Live(owner) {
		return errKeyOver()
	}
	return nil
}

func errKeyOver() error {
	return refuseWith(codeUnauthenticated, "the API key that made this sandbox is not valid any more, so the sandbox no longer answers")
}

// during has a request end with the validity of the token that made its sandbox.
func (d *Data) during(r *http.Request, box *sandbox.Sandbox) (bound *http.Request, stop func()) {
	owner := box.Info().Owner.Token
	if owner == "" {
		return r, func() {}
	}
	ctx, stop := d.cfg.Clients.During(r.Context(), owner)
	return r.WithContext(ctx), stop
}

// roomOf is whose room a sandbox's requests take: its token's, or its own.
func roomOf(box *sandbox.Sandbox) string {
	if owner := box.Info().Owner.Token; owner != "" {
		return owner
	}
	return "sandbox " + box.Info().ID
}

// Holds reports whether a request shows the access token of a sandbox that answers.
func (d *Data) Holds(r *http.Request, sandbox string) bool {
	token := d.cfg.Access.Token(sandbox)
	return token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get(headerAccess)), []byte(token)) == 1 && d.checkOwner(sandbox) == nil
}

// living returns a sandbox that clients may speak to now, or why there is none.
func (d *Data) living(id string) (*sandbox.Sandbox, error) {
	box, err := backend.Find(d.cfg.Sandboxes, id, backend.AnyOwnersViewer)
	if err != nil {
		return nil, err
	}
	switch state, _ := box.State(); state {
	case sandbox.Destroying, sandbox.Destroyed, sandbox.Failed, sandbox.Creating:
		return nil, fault.New(fault.ErrNotFound, "the sandbox is %s", state)
	case sandbox.Paused:
		return nil, fault.New(fault.ErrConflict, "the sandbox is paused")
	case sandbox.Running, sandbox.Freezing, sandbox.Frozen, sandbox.Thawing, sandbox.Snapshotting:
	}
	return box, nil
}

// isGone tells whether an error is there because the sandbox itself is not any more.
func (d *Data) isGone(id string) bool {
	_, err := d.living(id)
	return err != nil
}

// serveREST serves an HTTP route with JSON errors.
func (d *Data) serveREST(h func(http.ResponseWriter, *call) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r)
		err := h(w, c)
		switch {
		case err == nil, errors.Is(err, errAnswered):
		case d.isGone(c.id):
			writeGone(w, d, c.id)
		default:
			tellRetry(w.Header(), restStatus(err), err)
			writeError(w, restStatus(err), d.explainError(c, err).Message)
		}
	}
}

// errAnswered: the handler has answered already.
var errAnswered = backend.ErrAnswered

// explainError explains an error to the client. An error that only says that the sandbox does not run names what it waits for.
func (d *Data) explainError(c *call, err error) *failure {
	if errors.Is(err, fault.ErrConflict) {
		if held := heldSentence(c.box.Waits()); held != "" {
			return &failure{Code: codePrecondition, Message: held}
		}
	}
	f := failureOf(err)
	if f.Code == codeInternal {
		d.cfg.Log.ErrorContext(c.Context(), "a request to a sandbox failed", "sandbox", c.id, "path", c.URL.Path, "err", err)
	}
	return f
}
