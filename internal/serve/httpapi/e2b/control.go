package e2b

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
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

// Templates are those that can be built here; *template.Store is one.
type Templates interface {
	Known() []template.Known
	// Meant is the template that a name stands for now.
	Meant(name string) string
	List(ctx context.Context) ([]template.Template, error)
}

// Config is what the control plane works with. All fields are needed but Domain,
// MaxTimeout, Builds, Images and Refused.
type Config struct {
	Sandboxes Sandboxes
	Tokens    Tokens
	Policies  backend.Policies
	Templates Templates
	Access    Access
	// Builds makes templates; nil: none are built here.
	Builds *templatebuild.Builder
	// Images are templates by the images for which they stand; see templateFor.
	Images map[string]string
	// DefaultTemplate is what clients get that ask for "base": a template, or what stands for one.
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
	// Underway counts the requests of tokens; nil: one of its own.
	Underway *backend.Underway
	// Refused hears of requests without a valid key; nil: nobody does.
	Refused func(ctx context.Context)
	Log     *slog.Logger
}

// Control is the control plane's handler.
type Control struct {
	cfg      Config
	routes   *http.ServeMux
	logReads *fairqueue.Shares // of logs, by tokens
	// buildReads are of logs of builds.
	buildReads *fairqueue.Shares
}

// keyedRequest is a request of a caller who has shown a key.
type keyedRequest struct {
	*http.Request
	token token.Token
}

// controlHandler answers a request or returns why not.
type controlHandler func(w http.ResponseWriter, r *keyedRequest) error

// ServeHTTP routes a request; a caller without a key learns of no route.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, pattern := c.routes.Handler(r); pattern == "" {
		c.serveHandler(c.unknown)(w, r)
		return
	}
	c.routes.ServeHTTP(w, r)
}

func (c *Control) unknown(w http.ResponseWriter, r *keyedRequest) error {
	writeError(w, http.StatusNotImplemented, "this server has no "+text.Shorten(r.Method, 10)+" "+text.Shorten(r.URL.Path, 100))
	return nil
}

// serveHandler lets in who has a key, and turns a handler's error into an answer.
func (c *Control) serveHandler(h controlHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		t, err := c.authenticate(r)
		if err != nil {
			c.cfg.Log.WarnContext(r.Context(), "a request without a valid key", "path", r.URL.Path, "from", r.RemoteAddr)
			if c.cfg.Refused != nil {
				c.cfg.Refused(r.Context())
			}
			writeError(w, http.StatusUnauthorized, err.Error())
			return
		}
		counted, err := c.cfg.Underway.Join(t.ID, r)
		if err != nil {
			c.answerError(w, r, err)
			return
		}
		defer counted()
		ctx, stop := c.cfg.Tokens.During(r.Context(), t.ID)
		defer stop()
		ctx, leave := c.cfg.Room.Enter(ctx, t.ID)
		defer leave()
		if err := backend.Buffered(ctx, r); err != nil {
			c.answerError(w, r, err)
			return
		}
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := h(w, &keyedRequest{Request: r, token: t}); err != nil && !errors.Is(err, errAnswered) {
			c.answerError(w, r, err)
		}
	}
}

// ownSandbox returns a sandbox of the caller's; what is another's is not there.
func (c *Control) ownSandbox(r *keyedRequest) (*sandbox.Sandbox, error) {
	id := r.PathValue("id")
	sb, err := backend.Find(c.cfg.Sandboxes, SandboxOf(id), backend.TokenViewer(r.token.ID))
	if err != nil || !isLasting(sb) {
		return nil, notFound("sandbox", id)
	}
	return sb, nil
}

// isLasting reports whether a sandbox is not about to be gone.
func isLasting(sb *sandbox.Sandbox) bool {
	switch state, _ := sb.State(); state {
	case sandbox.Destroying, sandbox.Destroyed, sandbox.Failed:
		return false
	default:
		return true
	}
}

var (
	errNoKey  = errors.New("no API key: send one as X-API-Key; cofferdam token create makes one on the daemon's host")
	errBadKey = errors.New("the API key is not valid here, or not any more")
)

// authenticate finds the client of a request. Whether a key is unknown, revoked or
// expired is not told.
func (c *Control) authenticate(r *http.Request) (token.Token, error) {
	secret := backend.Secret(r)
	if secret == "" {
		return token.Token{}, errNoKey
	}
	t, ok := c.cfg.Tokens.Check(secret)
	if !ok {
		return token.Token{}, errBadKey
	}
	return t, nil
}
