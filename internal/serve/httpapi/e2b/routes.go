package e2b

import (
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// NewControl makes the handler.
func NewControl(cfg Config) *Control {
	if cfg.MaxTimeout == 0 {
		cfg.MaxTimeout = 24 * time.Hour
	}
	if cfg.Room == nil {
		cfg.Room = backend.NewRoom()
	}
	if cfg.Underway == nil {
		cfg.Underway = backend.NewUnderway()
	}
	oneOfEach := fairqueue.Limits{All: 2, Each: 1, Sure: 1, Most: 64, Line: readsLine}
	c := &Control{cfg: cfg, routes: http.NewServeMux(), logReads: fairqueue.New(oneOfEach), buildReads: fairqueue.New(oneOfEach)}
	for pattern, h := range c.handlers() {
		c.routes.HandleFunc(pattern, c.serveHandler(h))
	}
	if cfg.Builds != nil {
		for pattern, h := range c.building() {
			c.routes.HandleFunc(pattern, c.serveHandler(h))
		}
		c.routes.HandleFunc("PUT "+uploadsPath+"{ticket}", templateRoutes{c}.upload)
	}
	for pattern, sentence := range notHere() {
		c.routes.HandleFunc(pattern, c.serveHandler(func(w http.ResponseWriter, _ *keyedRequest) error {
			writeError(w, http.StatusNotImplemented, sentence)
			return nil
		}))
	}
	c.routes.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return c
}

// handlers are the routes that do something. Those without a version are the
// first version's, and those that have only one.
func (c *Control) handlers() map[string]controlHandler {
	templates, snapshots, secrets := templateRoutes{c}, snapshotRoutes{c}, secretRoutes{c}
	return map[string]controlHandler{
		"POST /sandboxes":                            c.serveCreate(defaultTimeout1),
		"POST /v2/sandboxes":                         c.serveCreate(defaultTimeout2),
		"GET /sandboxes":                             c.listRunning,
		"GET /v2/sandboxes":                          c.serveList,
		"GET /sandboxes/{id}":                        c.serveInfo,
		"DELETE /sandboxes/{id}":                     c.serveKill,
		"POST /sandboxes/{id}/connect":               c.serveConnect,
		"POST /v2/sandboxes/{id}/connect":            c.serveConnect,
		"POST /sandboxes/{id}/resume":                c.resume,
		"POST /sandboxes/{id}/timeout":               c.setTimeout,
		"POST /sandboxes/{id}/refreshes":             c.refresh,
		"POST /sandboxes/{id}/pause":                 c.servePause,
		"PUT /sandboxes/{id}/network":                c.setNetwork,
		"GET /sandboxes/{id}/metrics":                c.metrics,
		"POST /sandboxes/{id}/snapshots":             snapshots.snapshot,
		"POST /sandboxes/{id}/fork":                  snapshots.serveFork,
		"GET /snapshots":                             snapshots.listSnapshots,
		"GET /templates":                             templates.listTemplates,
		"GET /v2/templates":                          templates.listTemplates,
		"POST /templates/tags":                       templates.assignTags,
		"DELETE /templates/tags":                     templates.removeTags,
		"GET /templates/{id}":                        templates.showTemplate,
		"DELETE /templates/{id}":                     templates.removeTemplate,
		"GET /templates/{id}/{part}":                 templates.partOfTemplate,
		"GET /templates/{id}/tags/{part}":            templates.partOfTags,
		"GET /templates/{id}/tags/{tag}/assignments": templates.assignments,
		"GET /default-templates":                     templates.defaultTemplates,
		"GET /secrets":                               secrets.serveList,
		"GET /secrets/{id}":                          secrets.serveShow,
		"GET /templates/aliases/{alias}":             templates.aliasOf,
		"GET /sandboxes/{id}/logs":                   c.inTurn(c.serveLogs),
		"GET /v2/sandboxes/{id}/logs":                c.inTurn(c.serveLogsV2),
	}
}

// building are the routes of those who build templates.
func (c *Control) building() map[string]controlHandler {
	templates := templateRoutes{c}
	return map[string]controlHandler{
		"POST /v3/templates":                        templates.announce,
		"POST /v2/templates":                        templates.announce,
		"GET /templates/{id}/files/{hash}":          templates.uploadLink,
		"POST /v2/templates/{id}/builds/{build}":    templates.startBuild,
		"GET /templates/{id}/builds/{build}/status": templates.buildStatus,
		"GET /templates/{id}/builds/{build}/logs":   templates.serveBuildLogs,
	}
}

// notHere are routes of the protocol that are not served, and why.
func notHere() map[string]string {
	const (
		builds    = "this way of building a template is not here: build it by Template.build of an SDK that has it, or on the daemon's host with cofferdam template build NAME"
		volumes   = "there are no volumes here: write files into the sandbox, and snapshot it to keep them"
		notTheirs = "secrets are declared in the daemon's configuration, and a policy says which hosts get them: clients make, change and remove none"
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
		"POST /secrets":              notTheirs,
		"/secrets/":                  notTheirs,
		"GET /sandboxes/metrics":     "metrics are had of one sandbox at a time here",
	}
}
