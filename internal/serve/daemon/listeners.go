package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// Names of the wires, as metrics and spans have them.
const (
	wireControl = "control"
	wireData    = "data"
	wireV1      = "v1"
	wireMCP     = "mcp"
)

// sandboxHeader names the sandbox whose data plane a request is for.
const sandboxHeader = "E2b-Sandbox-Id"

// apiHandlers are what the TCP listener speaks. A nil one is not there.
type apiHandlers struct {
	control http.Handler // sandboxes, by the E2B protocol; X-API-Key
	data    http.Handler // what is in one sandbox, and its ports
	// owns tells that a request is data's by what only data knows, such as a
	// signature; nil: none is.
	owns func(r *http.Request) bool
	// holds tells that a request shows the access token of a sandbox; nil: all do.
	holds func(r *http.Request, sandbox string) bool
	// uploader is the token for which a request without a key brings files; nil: none does.
	uploader func(r *http.Request) (token string, ok bool)
	v1       http.Handler // our own API; Authorization: Bearer
	mcp      http.Handler // the Model Context Protocol; Authorization: Bearer
}

// openTCP opens the listener for clients with tokens, if one is configured. Nothing
// is accepted yet.
func (d *Daemon) openTCP(ctx context.Context) error {
	cfg := d.opts.Config.Listen
	if err := cfg.Check(); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the listener can't be opened: listen")
	}
	if !cfg.Wanted() {
		return nil
	}
	config, err := d.serverTLS(ctx)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Address)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the address %s can't be listened on", cfg.Address)
	}
	cfg.Address = portOf(cfg.Address, l.Addr()) // port 0 is whichever is free
	d.opts.Config.Listen = cfg
	l = backend.Lingering(newGuarded(l, cfg.MaxConnections)) // who lingers has a place
	if config != nil {
		l = secure(l, config, d.opts.Log)
	}
	d.tcp = newServer("TCP", l, nil, d.opts.Log)
	d.tcp.http.ConnContext = guardContext
	d.serves = append(d.serves, d.tcp)
	return nil
}

// portOf is an address with the port that was really opened.
func portOf(configured string, opened net.Addr) string {
	host, _, err := net.SplitHostPort(configured)
	_, port, oerr := net.SplitHostPort(opened.String())
	if err != nil || oerr != nil {
		return configured
	}
	return net.JoinHostPort(host, port)
}

// serveTCP joins the listener with the wires, once these are there.
func (d *Daemon) serveTCP(context.Context) error {
	if d.tcp == nil {
		return nil
	}
	spoken, err := d.openWires()
	if err != nil {
		return err
	}
	cfg := d.opts.Config.Listen
	d.tcp.http.Handler = d.used.countRequests((&front{
		wires: spoken, health: d.health, domain: cfg.Domain, telemetry: d.telemetry, log: d.opts.Log,
		pace: newPace(cfg.RequestsPerSecond, cfg.Burst), tokens: d.clients.tokens,
		ownerOf: func(id string) (string, bool) {
			s, err := d.sandboxes.Get(id)
			if err != nil {
				return "", false
			}
			return s.Info().Owner.Token, true
		},
	}).handler())
	fields := []any{"url", cfg.URL()}
	if ca := d.apiCA(); ca != "" {
		fields = append(fields, "ca", ca, "clients", "set NODE_EXTRA_CA_CERTS to the ca, and SSL_CERT_FILE to "+apiBundle(d)+": cofferdam env prints both")
	}
	d.opts.Log.Info("listening for clients with tokens", fields...)
	return nil
}

// apiCA is the file that clients must trust; "" where there is none of ours.
func (d *Daemon) apiCA() string {
	if !d.opts.Config.Listen.TLS.Auto {
		return ""
	}
	return d.opts.Paths.APICA()
}

// apiBundle is the file with what clients must trust and the system's CAs; "" as with apiCA.
func apiBundle(d *Daemon) string {
	if d.apiCA() == "" {
		return ""
	}
	return d.opts.Paths.APIBundle()
}

// front is the TCP listener's handler: it limits, and finds out whose a request is.
type front struct {
	wires     apiHandlers
	health    *health
	domain    string // "": ports have no names
	telemetry *telemetry.Telemetry
	log       logger
	pace      *pace
	tokens    tokens                                     // nil: none are known
	ownerOf   func(id string) (token string, known bool) // of a sandbox; "" is the host
	slowed    atomic.Int64                               // refusals that are kept back
}

// logger is what front needs of one.
type logger interface {
	ErrorContext(ctx context.Context, msg string, args ...any)
}

func (f *front) handler() http.Handler {
	f.wires.control = f.watched(wireControl, f.wires.control)
	f.wires.data = f.watched(wireData, f.wires.data)
	f.wires.v1 = f.watched(wireV1, f.wires.v1)
	f.wires.mcp = f.watched(wireMCP, f.wires.mcp)
	return backend.Hurried(identified(f.recovering(http.HandlerFunc(f.routeRequest))))
}

// watched counts and traces a wire's requests; a wire that is not there says so.
func (f *front) watched(name string, wire http.Handler) http.Handler {
	if wire == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuseClient(w, http.StatusNotFound, "this daemon does not speak the protocol of this route")
		})
	}
	return f.telemetry.HTTP(name, wire)
}

// routeRequest routes. The host's name comes first: what is asked for under the name of a
// sandbox's port is never the daemon's own.
func (f *front) routeRequest(w http.ResponseWriter, r *http.Request) {
	sandbox, data := f.sandboxOf(r)
	if !data {
		switch r.URL.Path {
		case "/healthz":
			serveAlive(w, r)
			return
		case "/readyz":
			f.health.serveReady(false)(w, r)
			return
		}
	}
	who, owner, after, ok := f.admitRequest(r, sandbox, data)
	sortOut(w, r, who, owner)
	if !ok {
		f.telemetry.Limited(who)
		f.slowRefusal(r.Context())
		e2b.TellWait(w.Header(), after) // no other wire's clients look for more than Retry-After
		refuseClient(w, http.StatusTooManyRequests, fmt.Sprintf("requests come too fast; try again in %d s", after))
		return
	}
	switch {
	case data:
		f.wires.data.ServeHTTP(w, r)
	case r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/"):
		f.wires.v1.ServeHTTP(w, r)
	case r.URL.Path == mcpPath:
		f.wires.mcp.ServeHTTP(w, r)
	default:
		f.wires.control.ServeHTTP(w, r)
	}
}

// sandboxOf tells whether a request is for what is in a sandbox, and which: by
// PORT-ID.domain, by the header, either with "-CLIENT" behind the id or not, or, with
// the id "", in a way that only the data plane knows.
func (f *front) sandboxOf(r *http.Request) (id string, data bool) {
	if id, ok := portName(r.Host, f.domain); ok {
		return id, true
	}
	if id := r.Header.Get(sandboxHeader); id != "" {
		return e2b.SandboxOf(id), true
	}
	return "", f.wires.owns != nil && f.wires.owns(r)
}

var portLabel = regexp.MustCompile(`^[0-9]{1,5}-([a-z0-9-]+)$`)

// portName reads PORT-ID.domain and PORT-ID-CLIENT.domain, with or without a port behind it.
func portName(host, domain string) (id string, ok bool) {
	if domain == "" {
		return "", false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	label, ok := strings.CutSuffix(strings.ToLower(strings.TrimSuffix(host, ".")), "."+domain)
	if !ok {
		return "", false
	}
	m := portLabel.FindStringSubmatch(label)
	if m == nil {
		return "", false
	}
	id = e2b.SandboxOf(m[1])
	return id, id != ""
}

// recovering answers for handlers that panic. http.ErrAbortHandler is the word of
// those that mean to cut the connection.
func (f *front) recovering(next http.Handler) http.Handler {
	return recovering(f.telemetry, f.log, next)
}

func recovering(t *telemetry.Telemetry, log logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			failure := recover()
			if failure == nil {
				return
			}
			if failure == http.ErrAbortHandler { //nolint:errorlint // it is compared as net/http does
				panic(failure)
			}
			t.Panicked()
			log.ErrorContext(r.Context(), "a handler panicked", "panic", fmt.Sprint(failure), "stack", string(debug.Stack()))
			refuseClient(w, http.StatusInternalServerError, "something inside failed; the daemon's log says more under the request "+telemetry.RequestID(r.Context()))
		}()
		next.ServeHTTP(w, r)
	})
}

// requestHeader carries a request's id, both ways.
const requestHeader = "X-Request-Id"

var plainRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// identified gives every request an id: the client's, if it is a plain word.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestHeader)
		if !plainRequestID.MatchString(id) {
			id = strings.ToLower(rand.Text()[:16])
		}
		w.Header().Set(requestHeader, id)
		next.ServeHTTP(w, r.WithContext(telemetry.WithRequestID(r.Context(), id)))
	})
}

// refuseClient answers a client whose wire is not known: a problem document that has
// what clients of the E2B protocol look for, too.
func refuseClient(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	//nolint:errcheck,errchkjson // the client went away; there is nobody to tell
	json.NewEncoder(w).Encode(struct {
		Title   string `json:"title"`
		Status  int    `json:"status"`
		Detail  string `json:"detail"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{http.StatusText(status), status, sentence, status, sentence})
}
