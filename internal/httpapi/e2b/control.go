package e2b

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/build"
	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/policies"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/template"
	"github.com/cofferdam-dev/cofferdam/internal/token"
)

// Sandboxes is what the control plane needs of the sandboxes' manager.
type Sandboxes interface {
	backend.Sandboxes
	// Narrow replaces what a sandbox's client has given up of the network.
	Narrow(ctx context.Context, id string, n policy.Narrowing) error
	Narrowing(id string) policy.Narrowing
	// NameSnapshot gives a snapshot of an owner's further names, UnnameSnapshot takes some.
	NameSnapshot(ctx context.Context, owner, id string, names []string) (sandbox.Snapshot, error)
	UnnameSnapshot(ctx context.Context, owner, id string, names []string) (sandbox.Snapshot, error)
}

// Tokens finds the client of an API key; *token.Book is one.
type Tokens interface {
	Check(secret string) (token.Token, bool)
	During(ctx context.Context, id string) (during context.Context, stop func())
}

// Policies are the named policies; *policies.Store is one.
type Policies interface {
	Get(name string) (*policies.Named, error)
}

// Templates are those that can be built here; *template.Store is one.
type Templates interface {
	Known() []template.Known
	List(ctx context.Context) ([]template.Template, error)
}

// Config is what the control plane works with. All fields are needed but Domain,
// MaxTimeout, Builds and Images.
type Config struct {
	Sandboxes Sandboxes
	Tokens    Tokens
	Policies  Policies
	Templates Templates
	Access    Access
	// Builds makes templates; nil: none are built here.
	Builds *build.Builder
	// Images are templates by the images for which they stand; see templateFor.
	Images map[string]string
	// DefaultTemplate is what clients get that ask for "base".
	DefaultTemplate string
	// Domain is told to clients, who make PORT-ID.Domain of it; it may end in a port.
	Domain string
	// MaxTimeout bounds what a client may ask for; 0: a day.
	MaxTimeout time.Duration
	// HostUID and HostGID are the host user that clients' sandboxes run for: one
	// that owns nothing.
	HostUID, HostGID int
	// Room bounds what the requests of tokens hold; nil: one of its own.
	Room *backend.Room
	Log  *slog.Logger
}

// Control is the control plane's handler.
type Control struct {
	cfg    Config
	routes *http.ServeMux
}

// The routes about templates and their builds, and about copies of sandboxes.
type (
	templateRoutes struct{ *Control }
	snapshotRoutes struct{ *Control }
)

// client is a request of a caller who has shown a key.
type client struct {
	*http.Request
	token token.Token
}

// handler answers a request or returns why not.
type handler func(w http.ResponseWriter, r *client) error

// NewControl makes the handler.
func NewControl(cfg Config) *Control {
	if cfg.MaxTimeout == 0 {
		cfg.MaxTimeout = 24 * time.Hour
	}
	if cfg.Room == nil {
		cfg.Room = backend.NewRoom()
	}
	c := &Control{cfg: cfg, routes: http.NewServeMux()}
	for pattern, h := range c.handlers() {
		c.routes.HandleFunc(pattern, c.serve(h))
	}
	if cfg.Builds != nil {
		for pattern, h := range c.building() {
			c.routes.HandleFunc(pattern, c.serve(h))
		}
		c.routes.HandleFunc("PUT "+uploadsPath+"{ticket}", templateRoutes{c}.upload)
	}
	for pattern, sentence := range notHere() {
		c.routes.HandleFunc(pattern, c.serve(func(w http.ResponseWriter, _ *client) error {
			writeError(w, http.StatusNotImplemented, sentence)
			return nil
		}))
	}
	c.routes.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return c
}

// handlers are the routes that do something. Those without a version are the
// first version's, and those that have only one.
func (c *Control) handlers() map[string]handler {
	templates, snapshots := templateRoutes{c}, snapshotRoutes{c}
	return map[string]handler{
		"POST /sandboxes":                 c.create(defaultTimeout1),
		"POST /v2/sandboxes":              c.create(defaultTimeout2),
		"GET /sandboxes":                  c.listRunning,
		"GET /v2/sandboxes":               c.list,
		"GET /sandboxes/{id}":             c.info,
		"DELETE /sandboxes/{id}":          c.kill,
		"POST /sandboxes/{id}/connect":    c.connect,
		"POST /v2/sandboxes/{id}/connect": c.connect,
		"POST /sandboxes/{id}/resume":     c.resume,
		"POST /sandboxes/{id}/timeout":    c.setTimeout,
		"POST /sandboxes/{id}/refreshes":  c.refresh,
		"POST /sandboxes/{id}/pause":      c.pause,
		"PUT /sandboxes/{id}/network":     c.setNetwork,
		"GET /sandboxes/{id}/metrics":     c.metrics,
		"POST /sandboxes/{id}/snapshots":  snapshots.snapshot,
		"POST /sandboxes/{id}/fork":       snapshots.fork,
		"GET /snapshots":                  snapshots.listSnapshots,
		"GET /templates":                  templates.listTemplates,
		"GET /v2/templates":               templates.listTemplates,
		"POST /templates/tags":            templates.assignTags,
		"DELETE /templates/tags":          templates.removeTags,
		"GET /templates/{id}":             templates.showTemplate,
		"DELETE /templates/{id}":          templates.removeTemplate,
		"GET /templates/{id}/{part}":      templates.partOfTemplate,
		"GET /templates/aliases/{alias}":  templates.aliasOf,
		"GET /sandboxes/{id}/logs":        c.logs,
		"GET /v2/sandboxes/{id}/logs":     c.logs2,
	}
}

// building are the routes of those who build templates.
func (c *Control) building() map[string]handler {
	templates := templateRoutes{c}
	return map[string]handler{
		"POST /v3/templates":                        templates.announce,
		"POST /v2/templates":                        templates.announce,
		"GET /templates/{id}/files/{hash}":          templates.uploadLink,
		"POST /v2/templates/{id}/builds/{build}":    templates.startBuild,
		"GET /templates/{id}/builds/{build}/status": templates.buildStatus,
		"GET /templates/{id}/builds/{build}/logs":   templates.buildLogs,
	}
}

// notHere are routes of the protocol that are not served, and why.
func notHere() map[string]string {
	const (
		builds  = "this way of building a template is not here: build it by Template.build of an SDK that has it, or on the daemon's host with cofferdam template build NAME"
		volumes = "there are no volumes here: write files into the sandbox, and snapshot it to keep them"
		secrets = "there are no secrets here: no credential is handed to a sandbox"
	)
	return map[string]string{
		"POST /templates":            builds,
		"PATCH /templates/{id}":      builds,
		"PATCH /v2/templates/{id}":   builds,
		"POST /templates/{id}":       builds,
		"/templates/{id}/builds/":    builds,
		"/v2/templates/{id}/builds/": builds,
		"/volumes":                   volumes,
		"/volumes/":                  volumes,
		"/volumecontent/":            volumes,
		"/secrets":                   secrets,
		"/secrets/":                  secrets,
		"GET /sandboxes/metrics":     "metrics are had of one sandbox at a time here",
	}
}

// ServeHTTP routes a request; a caller without a key learns of no route.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := c.routes.Handler(r); pattern == "" {
		c.serve(c.unknown)(w, r)
		return
	}
	c.routes.ServeHTTP(w, r)
}

func (c *Control) unknown(w http.ResponseWriter, r *client) error {
	writeError(w, http.StatusNotImplemented, "this server has no "+excerpt.Of(r.Method, 10)+" "+excerpt.Of(r.URL.Path, 100))
	return nil
}

// serve lets in who has a key, and turns a handler's error into an answer.
func (c *Control) serve(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t, err := c.authenticate(r)
		if err != nil {
			c.cfg.Log.WarnContext(r.Context(), "a request without a valid key", "path", r.URL.Path, "from", r.RemoteAddr)
			writeError(w, http.StatusUnauthorized, err.Error())
			return
		}
		ctx, stop := c.cfg.Tokens.During(r.Context(), t.ID)
		defer stop()
		ctx, leave := c.cfg.Room.Enter(ctx, t.ID)
		defer leave()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := h(w, &client{Request: r, token: t}); err != nil {
			c.refuse(w, r, err)
		}
	}
}

// ours returns a sandbox of the caller's; what is another's is not there.
func (c *Control) ours(r *client) (*sandbox.Sandbox, error) {
	id := r.PathValue("id")
	sb, err := c.cfg.Sandboxes.Get(shortID(id))
	if err != nil || !visible(sb, r.token) {
		return nil, notFound("sandbox", id)
	}
	return sb, nil
}

// visible reports whether a sandbox is the token's and not about to be gone.
func visible(sb *sandbox.Sandbox, t token.Token) bool {
	if sb.Info().Owner.Token != t.ID || sb.Info().Labels[build.Label] != "" { // a build's own is not a client's to use
		return false
	}
	switch state, _ := sb.State(); state {
	case sandbox.Destroying, sandbox.Destroyed, sandbox.Failed:
		return false
	default:
		return true
	}
}
