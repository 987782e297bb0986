package httpapi

// who may use a route. What a caller sees through it is narrowed further by its
// handler: a token sees what is its own (see caller.sees).
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
	handle  handler
}

// routes are all of /v1.
func (s *Server) routes() []route {
	return []route{
		{"GET /v1/openapi.yaml", anyone, s.openAPI},
		{"GET /v1/version", holders, s.version},
		{"POST /v1/shutdown", admins, s.shutdown},
		{"GET /v1/clock", admins, s.clock},
		{"POST /v1/clock/accept", people, s.acceptClock},

		{"POST /v1/sandboxes", holders, s.createSandbox},
		{"GET /v1/sandboxes", holders, s.listSandboxes},
		{"GET /v1/sandboxes/{id}", holders, s.getSandbox},
		{"DELETE /v1/sandboxes/{id}", holders, s.destroySandbox},
		{"GET /v1/sandboxes/{id}/holds", holders, s.holds},
		{"POST /v1/sandboxes/{id}/pause", holders, s.pauseSandbox},
		{"POST /v1/sandboxes/{id}/resume", holders, s.resumeSandbox},
		{"PUT /v1/sandboxes/{id}/lifetime", holders, s.setLifetime},
		{"GET /v1/sandboxes/{id}/usage", holders, s.usage},
		{"POST /v1/sandboxes/{id}/snapshots", holders, s.makeSnapshot},
		{"POST /v1/sandboxes/{id}/fork", holders, s.forkSandbox},
		{"POST /v1/sandboxes/{id}/commands", holders, s.startCommand},
		{"GET /v1/sandboxes/{id}/commands/{cmd}", holders, s.getCommand},
		{"GET /v1/sandboxes/{id}/commands/{cmd}/attach", holders, s.attach},
		{"GET /v1/sandboxes/{id}/ports/{port}", holders, s.port},
		{"GET /v1/sandboxes/{id}/files", holders, s.readFile},
		{"PUT /v1/sandboxes/{id}/files", holders, s.writeFile},
		{"DELETE /v1/sandboxes/{id}/files", holders, s.removeFile},
		{"GET /v1/sandboxes/{id}/files/stat", holders, s.statFile},
		{"GET /v1/sandboxes/{id}/files/list", holders, s.listFiles},
		{"POST /v1/sandboxes/{id}/files/mkdir", holders, s.makeDirectory},
		{"POST /v1/sandboxes/{id}/files/move", holders, s.moveFile},
		{"GET /v1/events", holders, s.events},

		{"GET /v1/snapshots", holders, s.listSnapshots},
		{"GET /v1/snapshots/{ref}", holders, s.getSnapshot},
		{"DELETE /v1/snapshots/{ref}", holders, s.removeSnapshot},

		{"GET /v1/runs/{run}/summary", holders, s.summary},
		{"GET /v1/runs/{run}/suggest", holders, s.suggest},
		{"GET /v1/runs/{run}/plan", holders, s.showPlan},
		{"POST /v1/runs/{run}/plan", holders, s.makePlan},
		{"GET /v1/refusals", holders, s.tellRefusals},
		{"GET /v1/installs", holders, s.installs},

		{"GET /v1/templates", holders, s.listTemplates},
		{"GET /v1/templates/{name}", holders, s.showTemplate},
		{"POST /v1/templates/{name}", admins, s.buildTemplate},
		{"DELETE /v1/templates/{name}", admins, s.removeTemplate},

		{"GET /v1/policies", holders, s.listPolicies},
		{"GET /v1/policies/{name}", holders, s.getPolicy},
		{"PUT /v1/policies/{name}", admins, s.putPolicy},
		{"DELETE /v1/policies/{name}", admins, s.removePolicy},

		{"GET /v1/tokens", admins, s.listTokens},
		{"POST /v1/tokens", admins, s.makeToken},
		{"DELETE /v1/tokens/{id}", admins, s.revokeToken},

		{"GET /v1/approvals", admins, s.listApprovals},
		{"GET /v1/approvals/watch", admins, s.watchApprovals},
		{"GET /v1/approvals/{id}", admins, s.getApproval},
		{"POST /v1/approvals/answer", people, s.answerApprovals},
		{"POST /v1/approvals/{id}/revoke", people, s.revokeApproval},

		{"GET /v1/audit/records", admins, s.records},
		{"GET /v1/audit/stream", admins, s.auditStream},
		{"POST /v1/audit/query", admins, s.auditQuery},
		{"POST /v1/audit/reports/{name}", admins, s.auditReport},
		{"POST /v1/audit/seal", admins, s.sealAudit},
		{"POST /v1/audit/erase", admins, s.eraseAudit},
		{"POST /v1/audit/key", admins, s.rotateAuditKey},

		{"GET /v1/advisories", admins, s.advisories},
		{"POST /v1/advisories", people, s.importAdvisories},
		{"PUT /v1/advisories/{label}", admins, s.uploadAdvisories},
		{"DELETE /v1/advisories", admins, s.removeAllAdvisories},
		{"DELETE /v1/advisories/{label}", admins, s.removeAdvisories},
		{"GET /v1/advisories/check", holders, s.checkPackage},
	}
}
