package door

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// ReachAsk asks what to read so that it shows whether the policy's entries lead to a
// package: clients that install from a lockfile read no metadata, and ask for files in
// any order. Its three flags are facts, which count together; what is to be done is the
// method's name.
type ReachAsk struct {
	Sandbox string     `json:"sandbox"`
	Package pkgref.Ref `json:"package"` // without a version any release of it will do
	// Pages tells that an index page says what all releases on it require.
	Pages bool `json:"pages,omitempty"`
	// Metadata tells that only what resolvers read of the package is wanted: then it
	// does whoever requires it, and little is read.
	Metadata bool `json:"metadata,omitempty"`
	// Deep: a file is wanted, so that what only older releases require is read too.
	Deep bool `json:"deep,omitempty"`
	// Again are projects that were to be read and could not be had.
	Again []pkgref.Ref `json:"again,omitempty"`
}

// ReachAnswer says what to read next. Reached: reading more would not change the
// answer about the package. Neither, and nothing to read: nothing leads to it.
type ReachAnswer struct {
	Reached bool     `json:"reached"`
	Next    []ToRead `json:"next,omitempty"`
	// Open, where nothing is left to read, tells that what the client asks for next may
	// lead to the package.
	Open bool `json:"open,omitempty"`
}

// ToRead is a project whose page is to be read, and, where pages do not say what
// releases require, the metadata of some releases.
type ToRead struct {
	Project pkgref.Ref `json:"project"`
	// Versions are to be read first: clients asked for them, or lockfiles pin them.
	Versions []string `json:"versions,omitempty"`
	// Round counts how often it was to be read before.
	Round int `json:"round"`
	// Anew: more leads to it now, so that releases may be had that could not.
	Anew bool `json:"anew,omitempty"`
}

// What is shown to a sandbox without being installed, as records say it
// (Record.Detail "kind"). An index of which something is withheld has its `withheld`
// record, and no other.
const (
	ShownIndex    = "index"    // a project's page
	ShownMetadata = "metadata" // of a release: .mod, .info, a wheel's METADATA
	ShownOutline  = "outline"  // of a release that is not let in: what it requires
	ShownRelayed  = "relayed"  // what its client verifies itself: attestations, a transparency log's parts
)

// Question is one to an upstream, because of a sandbox: for a page, a file, or what
// describes a release.
type Question struct {
	Sandbox string     `json:"sandbox"`
	Package pkgref.Ref `json:"package,omitzero"` // without a version: all of a project; zero: of none
	File    string     `json:"file,omitempty"`
	URL     string     `json:"url"` // without credentials
}

// Showing is metadata that is about to be sent to a sandbox.
type Showing struct {
	Sandbox   string     `json:"sandbox"`
	Package   pkgref.Ref `json:"package,omitzero"` // zero: it is of no project
	Kind      string     `json:"kind"`             // ShownMetadata or ShownRelayed
	File      string     `json:"file"`
	SourceURL string     `json:"source_url,omitempty"`
	SHA256    string     `json:"sha256"` // hex, of the bytes that are sent
	Size      int64      `json:"size"`
}

// ProposalAsk is what an agent asks for before anything fails: releases that
// the gateway has looked up, with their files. See Door.Propose.
type ProposalAsk struct {
	Sandbox string        `json:"sandbox"`
	Because string        `json:"because,omitempty"` // the agent's own reason: a claim
	Items   []ProposedAsk `json:"items"`
}

// ProposedAsk is one release of a proposal.
type ProposedAsk struct {
	Package   pkgref.Ref        `json:"package"` // with version
	Upstream  string            `json:"upstream,omitempty"`
	Toolchain bool              `json:"toolchain,omitempty"`
	SourceURL string            `json:"source_url"` // the index page's
	Files     []File            `json:"files"`
	Evidence  evidence.Evidence `json:"evidence"` // what the index tells
}

// Proposed is what became of one item of a proposal.
type Proposed struct {
	Package  pkgref.Ref    `json:"package"`
	Effect   policy.Effect `json:"effect"`
	Rule     string        `json:"rule,omitempty"`
	Reason   string        `json:"reason"`
	Approval string        `json:"approval,omitempty"` // the request in the queue, of a hold
}

// The rules of failures that are nobody's refusal here: the upstream does not have what
// was asked for, does not give it to the gateway, or can't answer.
const (
	RuleMissing  = "upstream.missing"
	RuleDeclined = "upstream.declined"
	RuleFailed   = "upstream.failed"
)

// ApproveCommand is what a person enters on the host to approve a request.
func ApproveCommand(id string) string { return "cofferdam approvals approve " + id }
