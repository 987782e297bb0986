package api

import (
	"encoding/json"
	"time"
)

// Approval is a request of the queue, as package internal/decide/approval has it: GET
// /v1/approvals (query: state, run, group, ecosystem, package; newest first) and
// GET /v1/approvals/{id}. One that has "members" is a tree: all that one install brings
// and that waits. Its members (id, package, depth, digests, state) are requests of their
// own, which are listed, too, with their "tree"; GET of the tree itself has each of them
// whole, as "request". An answer to the tree's id is one to all of its members that wait.
// Its "revision" counts what it has been shown as, and "answer_id" is ID@REVISION: an
// answer names it, and is refused (409) once the request is at another revision.
type Approval = json.RawMessage

// AnswerApprovals is the body of POST /v1/approvals/answer: one answer for
// several requests. All are answered or, on an error, none.
type AnswerApprovals struct {
	// IDs are of requests, as ID@REVISION or bare; a group's or a tree's id stands for its
	// pending requests.
	IDs    []string `json:"ids" most:"2000"`
	State  string   `json:"state"`           // approved, denied
	Scope  string   `json:"scope,omitempty"` // once, run, policy, everywhere; "" is once to approve a call of a tool, else run
	Reason string   `json:"reason,omitempty"`
	// ExpiresSeconds from now; 0: never.
	ExpiresSeconds int64 `json:"expires_seconds,omitempty"`
	// Digests are, by request, those that the person was shown. A request whose
	// files are others by now is not answered: 409. Without an entry the answer
	// is bound to the files that are known now. Of a tree they are given by its
	// members; each is bound to those of them that are still known, and without an
	// entry to those that the tree was asked for with.
	Digests map[string][]string `json:"digests,omitempty" most:"20000"`
	// Revisions are, by request, those that the person was shown, of ids that do not say it
	// themselves; of a group that of each of its pending requests, of which a tree's stands
	// for its members. An approval needs them, and is 400 without. A denial without one is
	// of the request as it is by now.
	Revisions map[string]uint64 `json:"revisions,omitempty" most:"20000"`
}

// ApprovalEvent is one line of GET /v1/approvals/watch (JSON lines; query:
// since, the last event's number; only later ones are sent, then new ones as
// they happen).
type ApprovalEvent struct {
	Number  uint64    `json:"number"`
	At      time.Time `json:"at"`
	Event   string    `json:"event"` // asked, joined, approved, denied, expired, revoked, superseded
	Request Approval  `json:"request"`
}

// Hold is something that a sandbox waits for: Sandbox.Holds, and the lines of
// GET /v1/sandboxes/{id}/holds?watch=1, each the whole list as it is now.
type Hold struct {
	Request string `json:"request"` // in the approval queue
	// Tree is the request for all that the install brings, of which Request is a member.
	Tree    string    `json:"tree,omitempty"`
	Package string    `json:"package"` // "python rich 13.7.1", "host api.example:443", "push to git.example:443/acme/app sha256:..." or "tool lookup_order sha256:...", escaped for a terminal
	Reason  string    `json:"reason"`
	Since   time.Time `json:"since"`
	Frozen  bool      `json:"frozen"` // the sandbox is on disk meanwhile
	// Unfrozen says why it is not, though its policy says on_hold: freeze.
	Unfrozen string `json:"unfrozen,omitempty"`
}
