// Package approval is the queue of held requests: what a policy neither allows
// nor denies waits here, with its evidence, until a person answers.
//
// Each request is of one owner (a token, or a user of the host): the same release asked for by many
// runs of an owner is one request. All that one install brings and that waits may be asked for as
// one request, a tree, whose members are requests of one release each. The policy weighs an answer
// as a grant (policy.Approval).
//
// Everything in a request that did not come from this installation (names in
// metadata, the agent's reasons, a task) is data that others control: it is
// clipped, stored as it is, and escaped by whoever shows it.
package approval

import (
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// State is where a request stands.
type State string

// The states. Only Pending waits; the others are final but for a new request.
const (
	Pending    State = "pending"
	Approved   State = "approved"
	Denied     State = "denied"
	Expired    State = "expired"    // nobody answered in time, or the answer's time is over
	Superseded State = "superseded" // its files are others now; another request has taken its place
)

// Scope says for whom an answer holds.
type Scope string

// The scopes.
const (
	ScopeRun        Scope = "run"        // the runs that had asked when it was given
	ScopePolicy     Scope = "policy"     // every run under the policy documents (by digest) of those runs
	ScopeEverywhere Scope = "everywhere" // every run of this installation
)

// File is a file of the release that was seen: what an approval is bound to.
type File struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`    // policy.ArtifactKind
	Digests []string `json:"digests"` // "algorithm:<hex>", or Go's "h1:<base64>"; the strong ones bind
	Size    int64    `json:"size,omitempty"`
	Scripts bool     `json:"scripts,omitempty"` // something runs when it is installed
	// Published by the upstream or a witness; zero: unknown.
	Published time.Time `json:"published,omitzero"`
}

// Ask is one run's question about a request: a release.
type Ask struct {
	Package  pkgref.Ref `json:"package,omitzero"` // with version
	Host     Host       `json:"host,omitzero"`    // in the place of a package and its files
	Call     Call       `json:"call,omitzero"`    // the same
	Upstream string     `json:"upstream"`         // the index's URL, without credentials
	Files    []File     `json:"files"`            // seen by now; may be added to by a later ask

	Run        string `json:"run"`
	Sandbox    string `json:"sandbox"`
	Policy     string `json:"policy"`                // digest of the document
	PolicyName string `json:"policy_name,omitempty"` // its source, for people
	Token      string `json:"token,omitempty"`       // whose run it is; "": the host's
	OwnerKey   string `json:"owner_key,omitempty"`   // audit.OwnerKeys.Of the run; "": the host's
	User       string `json:"user,omitempty"`        // who started the run
	Task       string `json:"task,omitempty"`        // the run's stated task
	Because    string `json:"because,omitempty"`     // the agent's own reason: a claim
	// WantedBy is its place in the tree: "rich 13.7.1 requires markdown-it-py >=2.2.0".
	WantedBy []string          `json:"wanted_by,omitempty"`
	Rule     string            `json:"rule"`   // that holds it
	Reason   string            `json:"reason"` // of the policy
	Evidence evidence.Evidence `json:"evidence"`
	// Notes are what a person should know of a new request beside that, a sentence each.
	Notes []string `json:"notes,omitempty"`
	// Group joins what one run asks for in one go; "" is the run's burst of now.
	Group string `json:"group,omitempty"`
	// ByPerson tells that User asks for it, and no program: it does not end with the
	// run.
	ByPerson bool `json:"by_person,omitempty"`
}

// Request is a release, a host on the network, a push to a repository or a call of a tool of the host,
// that waits or was answered; or a tree of releases.
type Request struct {
	ID       string            `json:"id"` // "ap-" and six characters that are hard to confuse
	State    State             `json:"state"`
	Kind     Kind              `json:"kind,omitempty"`
	Package  pkgref.Ref        `json:"package,omitzero"`
	Host     Host              `json:"host,omitzero"` // of KindHost and KindPush, which have neither package nor files
	Call     Call              `json:"call,omitzero"` // of KindCall, the same
	Upstream string            `json:"upstream"`
	Files    []File            `json:"files"`
	Evidence evidence.Evidence `json:"evidence"`
	Rule     string            `json:"rule"`
	Reason   string            `json:"reason"`
	Group    string            `json:"group,omitempty"`
	// Members are the releases of a tree, in its order; it has no files and no evidence
	// of its own. Of any other request there are none, and Tree is the tree that it
	// waits in, or that it was first asked for with.
	Members []Member `json:"members,omitempty"`
	Tree    string   `json:"tree,omitempty"`
	// Notes are what a person should know beside the evidence, a sentence each.
	Notes []string `json:"notes,omitempty"`
	Asks  []Asker  `json:"asks"` // at most MaxAsks; Asked counts all
	Asked int      `json:"asked"`
	// Revision counts what it has been shown as: it grows with whatever is new in what it
	// would let in, whom, or what is known of it. A tree's counts those of its members.
	Revision uint64 `json:"revision"`
	// AnswerID is ID@REVISION, by which an answer names what was shown. Readers get it.
	AnswerID string `json:"answer_id,omitempty"`
	// Revisions are the last changes, at most 20.
	Revisions []Revised `json:"revisions,omitempty"`
	Created   time.Time `json:"created"`
	Updated   time.Time `json:"updated"`
	Expires   time.Time `json:"expires,omitzero"` // if nobody answers
	Seen      *Seen     `json:"seen,omitempty"`   // by a person, for the first time; nil: nobody has looked at it
	Answer    *Answer   `json:"answer,omitempty"` // stays when it has ended
	// Ended says why the request or its answer holds no more: "nobody answered in
	// time", "the answer's time is over", "revoked by alice: ...".
	Ended      string `json:"ended,omitempty"`
	ReplacedBy string `json:"replaced_by,omitempty"` // Superseded: the request in its place
	// Near are names that others of its group have and that are almost its own. It
	// is worked out by Get and List, for pending requests.
	Near []string `json:"near,omitempty"`
	// RunsEnded is that every run that asked has ended, so that nobody waits for an answer that is
	// for one. It is worked out as Near is.
	RunsEnded bool `json:"runs_ended,omitempty"`
}

// Seen is that a person has looked at a request, or filed it: it does not end before
// its time then.
type Seen struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Asker is who asked.
type Asker struct {
	Run        string    `json:"run"`
	Sandbox    string    `json:"sandbox"`
	Policy     string    `json:"policy"`
	PolicyName string    `json:"policy_name,omitempty"`
	Token      string    `json:"token,omitempty"`
	OwnerKey   string    `json:"owner_key,omitempty"`
	User       string    `json:"user,omitempty"`
	Task       string    `json:"task,omitempty"`
	Because    string    `json:"because,omitempty"`
	WantedBy   []string  `json:"wanted_by,omitempty"`
	At         time.Time `json:"at"`
}

// MaxAsks is how many askers a request names.
const MaxAsks = 32

// Answer is what a person decided, on a revision and bound to the digests that they were shown.
type Answer struct {
	State   State     `json:"state"` // Approved or Denied
	By      string    `json:"by"`    // who, on the host
	At      time.Time `json:"at"`
	Scope   Scope     `json:"scope"`
	Reason  string    `json:"reason,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // of an approval; zero: never
	// Digests are those of the files that the person was shown.
	Digests []string `json:"digests"`
	// Revision is the one that it was given on; 0: a denial that names none, or a tree's
	// answer, whose members' answers have theirs.
	Revision uint64   `json:"revision,omitempty"`
	Runs     []string `json:"runs,omitempty"`     // ScopeRun, ScopeOnce
	Policies []string `json:"policies,omitempty"` // ScopePolicy, by digest
}
