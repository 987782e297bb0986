package httpapi

import (
	"net/http"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// who may use a route. Its handler narrows further what a caller sees through it: a token sees what
// is its own (see caller.viewer).
type who int

const (
	// anyone needs no token.
	anyone who = iota + 1
	// holders are all tokens, and the callers on the Unix socket.
	holders
	// admins are the tokens that may do what the host's user may, and the callers
	// on the Unix socket.
	admins
	// people are the callers on the Unix socket, whom the kernel tells of. No token
	// is one: who asks for a package must not be able to answer for it.
	people
)

// String names it for messages and tests.
func (w who) String() string {
	switch w {
	case anyone:
		return "anyone"
	case holders:
		return "every token"
	case admins:
		return "admin tokens"
	default:
		return "callers on the Unix socket"
	}
}

// route is one route of /v1, and the only place that says who may use it.
type route struct {
	pattern string // of http.ServeMux
	who     who
	handle  routeHandler
}

// routes are all of /v1, by what they are about. Each group shares the desk.
func (s *Server) routes() []route {
	d := s.desk
	advisories := advisoryRoutes{d}
	approvals := approvalRoutes{d}
	audits := auditRoutes{d}
	calls := callRoutes{d}
	commands := commandRoutes{d}
	files := fileRoutes{d}
	policies := policyRoutes{d}
	runs := runRoutes{d}
	sandboxes := sandboxRoutes{d}
	snapshots := snapshotRoutes{d}
	templates := templateRoutes{d}
	tokens := tokenRoutes{d}
	return []route{
		{"GET /v1/openapi.yaml", anyone, s.openAPI},
		{"GET /v1/version", holders, s.serveVersion},
		{"POST /v1/shutdown", admins, s.shutdown},
		{"GET /v1/clock", admins, s.serveClock},
		{"POST /v1/clock/accept", people, s.acceptClock},
		{"POST /v1/config/reload", people, s.reloadConfig},

		{"POST /v1/sandboxes", holders, sandboxes.createSandbox},
		{"GET /v1/sandboxes", holders, sandboxes.listSandboxes},
		{"GET /v1/sandboxes/{id}", holders, sandboxes.getSandbox},
		{"DELETE /v1/sandboxes/{id}", holders, sandboxes.destroySandbox},
		{"GET /v1/sandboxes/{id}/holds", holders, sandboxes.serveHolds},
		{"POST /v1/sandboxes/{id}/pause", holders, sandboxes.pauseSandbox},
		{"POST /v1/sandboxes/{id}/resume", holders, sandboxes.resumeSandbox},
		{"PUT /v1/sandboxes/{id}/lifetime", holders, sandboxes.setLifetime},
		{"GET /v1/sandboxes/{id}/usage", holders, sandboxes.serveUsage},
		{"GET /v1/sandboxes/{id}/controls", holders, sandboxes.controls},
		{"POST /v1/sandboxes/{id}/snapshots", holders, snapshots.makeSnapshot},
		{"POST /v1/sandboxes/{id}/fork", holders, snapshots.forkSandbox},
		{"POST /v1/sandboxes/{id}/commands", holders, commands.startCommand},
		{"GET /v1/sandboxes/{id}/commands/{cmd}", holders, commands.getCommand},
		{"POST /v1/sandboxes/{id}/commands/{cmd}/signal", holders, commands.signalCommand},
		{"GET /v1/sandboxes/{id}/commands/{cmd}/attach", holders, commands.attach},
		{"GET /v1/sandboxes/{id}/ports/{port}", holders, commands.servePort},
		{"GET /v1/sandboxes/{id}/files", holders, files.readFile},
		{"PUT /v1/sandboxes/{id}/files", holders, files.writeFile},
		{"DELETE /v1/sandboxes/{id}/files", holders, files.removeFile},
		{"GET /v1/sandboxes/{id}/files/stat", holders, files.statFile},
		{"GET /v1/sandboxes/{id}/files/list", holders, files.listFiles},
		{"POST /v1/sandboxes/{id}/files/mkdir", holders, files.makeDirectory},
		{"POST /v1/sandboxes/{id}/files/move", holders, files.moveFile},
		{"GET /v1/events", holders, sandboxes.events},

		{"GET /v1/homes", people, sandboxes.listHomes},
		{"DELETE /v1/homes/{name}", people, sandboxes.removeHome},

		{"POST /v1/calls", holders, calls.makeCall},

		{"GET /v1/snapshots", holders, snapshots.listSnapshots},
		{"GET /v1/snapshots/{ref}", holders, snapshots.getSnapshot},
		{"DELETE /v1/snapshots/{ref}", holders, snapshots.removeSnapshot},

		{"GET /v1/runs/{run}/summary", holders, s.inTurn(runs.summary)},
		{"GET /v1/runs/{run}/suggest", holders, s.inTurn(runs.suggest)},
		{"GET /v1/runs/{run}/plan", holders, runs.showPlan},
		{"POST /v1/runs/{run}/plan", holders, runs.makePlan},
		{"GET /v1/refusals", holders, s.inTurn(runs.tellRefusals)},
		{"GET /v1/alarms", holders, s.inTurn(runs.tellAlarms)},
		{"GET /v1/installs", holders, s.inTurn(runs.installs)},

		{"GET /v1/templates", holders, templates.listTemplates},
		{"GET /v1/templates/{name}", holders, templates.showTemplate},
		{"POST /v1/templates/{name}", admins, templates.buildTemplate},
		{"DELETE /v1/templates/{name}", admins, templates.removeTemplate},

		{"GET /v1/policies", holders, policies.listPolicies},
		{"GET /v1/policies/{name}", holders, policies.getPolicy},
		{"PUT /v1/policies/{name}", admins, policies.putPolicy},
		{"DELETE /v1/policies/{name}", admins, policies.removePolicy},

		{"GET /v1/secrets", people, sandboxes.listSecrets},

		{"GET /v1/tokens", admins, tokens.listTokens},
		{"POST /v1/tokens", admins, tokens.makeToken},
		{"DELETE /v1/tokens/{id}", admins, tokens.revokeToken},

		{"GET /v1/approvals", admins, approvals.listApprovals},
		{"GET /v1/approvals/watch", admins, approvals.watchApprovals},
		{"GET /v1/approvals/{id}", admins, approvals.getApproval},
		{"GET /v1/approvals/{id}/diff", admins, approvals.diffApproval},
		{"POST /v1/approvals/answer", people, approvals.answerApprovals},
		{"POST /v1/approvals/{id}/revoke", people, approvals.revokeApproval},

		{"GET /v1/audit/records", admins, audits.records},
		{"GET /v1/audit/stream", admins, audits.auditStream},
		{"POST /v1/audit/query", admins, audits.auditQuery},
		{"POST /v1/audit/reports/{name}", admins, audits.auditReport},
		{"POST /v1/audit/seal", admins, audits.sealAudit},
		{"POST /v1/audit/erase", admins, audits.eraseAudit},
		{"POST /v1/audit/key", admins, audits.rotateAuditKey},

		{"GET /v1/advisories", admins, advisories.advisories},
		{"POST /v1/advisories", people, advisories.importAdvisories},
		{"PUT /v1/advisories/{label}", admins, advisories.uploadAdvisories},
		{"DELETE /v1/advisories", admins, advisories.removeAllAdvisories},
		{"DELETE /v1/advisories/{label}", admins, advisories.removeAdvisories},
		{"GET /v1/advisories/check", holders, advisories.checkPackage},
	}
}

// openAPI answers with the description of all that is here.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	return backend.WriteBytes(w, api.OpenAPI())
}
