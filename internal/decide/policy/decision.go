package policy

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Effect is what a decision does.
type Effect string

// The effects. The zero Effect is no decision and must be treated as Deny.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
	Hold  Effect = "hold" // a human must answer
)

// ArtifactKind is the kind of a release's file.
type ArtifactKind string

// The kinds. KindOther is what no ecosystem recognised; it is always refused.
const (
	KindWheel ArtifactKind = "wheel"
	KindSdist ArtifactKind = "sdist"
	// KindBuilt is a wheel that was, or would be, built of a release's source
	// distribution in a sandbox of its own. Its digest is the source's.
	KindBuilt ArtifactKind = "built"
	// KindRan is a package whose install scripts ran, or would run, in a sandbox of its
	// own, and that has none any more. Its digest is that of the published package.
	KindRan   ArtifactKind = "ran"
	KindOther ArtifactKind = "other"
	// KindPackage is a release's one archive, in ecosystems that have only one
	// kind (npm's tarball, Go's module zip, a crate).
	KindPackage ArtifactKind = "package"
	// KindMetadata is no file that could be installed: what a resolver reads
	// of a release, also of releases that it then does not want (Go's .mod). It is
	// judged by the name.
	KindMetadata ArtifactKind = "metadata"
)

// Made tells that a file is not its publisher's: it was, or would be, made of one in a
// sandbox of its own.
func (k ArtifactKind) Made() bool { return k == KindBuilt || k == KindRan }

// ResolvedBy tells which step of the order in docs/policy.md decided.
type ResolvedBy string

// The steps.
const (
	ByBlocklist  ResolvedBy = "blocklist"
	ByAdvisory   ResolvedBy = "advisory"  // known malware, or a name near a popular one
	ByNamespace  ResolvedBy = "namespace" // a private name, at another upstream than its own
	ByLockfile   ResolvedBy = "lockfile"  // outside of it, or not the file that it names; with trust, inside
	ByToolchain  ResolvedBy = "toolchain" // packages.toolchains
	ByAllowlist  ResolvedBy = "allowlist"
	ByDependency ResolvedBy = "dependency" // admitted through with_dependencies
	ByDefault    ResolvedBy = "default"    // packages.default
	ByRule       ResolvedBy = "rule"       // commands, code, tools
	ByIntegrity  ResolvedBy = "integrity"  // not policy's: the gateway refused unverifiable bytes
	ByCanonical  ResolvedBy = "canonical"  // the name is not a canonical name
	ByNetwork    ResolvedBy = "network"    // a name on the network
)

// Edge is a fact: verified metadata of release Parent, served in this run,
// requires the package Name within Specifier (the ecosystem's own syntax, ""
// means any version).
type Edge struct {
	Parent    pkgref.Ref `json:"parent"`
	Through   string     `json:"through"` // Decision.Through of Parent; "" if its entry has no with_dependencies
	Name      string     `json:"name"`    // canonical
	Specifier string     `json:"specifier"`
	// Unasked are the extras of Parent of which each alone brings Name, with commas
	// between, where nothing asks for one of them: then the edge admits nothing.
	Unasked string `json:"unasked,omitempty"`
	// Optional tells that clients install Parent without Name where it can't be had.
	Optional bool `json:"optional,omitempty"`
}

// Input is one question about one file of one release.
type Input struct {
	Subject   // Package with its version
	FileFacts // Version "" is Package.Version
}

func (in Input) fileFacts() FileFacts {
	if in.Version == "" {
		in.Version = in.Package.Version
	}
	return in.FileFacts
}

// Decision is the answer, a value: a denial is not an error.
type Decision struct {
	Effect     Effect     `json:"effect"`
	Rule       string     `json:"rule"` // stable id, e.g. "allowed_packages.python.requests"
	ResolvedBy ResolvedBy `json:"resolved_by"`
	Reason     string     `json:"reason"`              // one ASCII sentence from fixed text, names and versions; no publisher text
	Through    string     `json:"through,omitempty"`   // the with_dependencies entry that admitted it, directly or by edges
	Suggest    string     `json:"suggest,omitempty"`   // YAML lines that would allow it, "" if nothing would
	WantedBy   []Edge     `json:"wanted_by,omitempty"` // allowed parents that require it
	// Pinned is the version to which a lockfile pins the package: what was requested.
	Pinned string `json:"pinned,omitempty"`
	// Alarm tells that a denial is more than a refusal: somebody's bytes are not
	// what a lockfile or an advisory says that they must (not) be.
	Alarm bool `json:"alarm,omitempty"`
	// Would is Deny or Hold where an Allow is one only because the policy observes: see
	// Observes. Rule and Reason are those of the refusal that there would have been.
	Would Effect `json:"would,omitempty"`
	// Approval is the id of the request whose answer decided.
	Approval string `json:"approval,omitempty"`
	// Unadmitted tells that an Allow only shows what nothing admits: metadata of
	// what waits for a person, or, set by admission, a file in a plan.
	Unadmitted bool `json:"unadmitted,omitempty"`
}

// Allowed reports whether the effect is Allow.
func (d Decision) Allowed() bool { return d.Effect == Allow }

// Shown reports whether a list shows it, and whether its metadata may be read: what is
// allowed, and what waits for a person, since a resolver has to pick it before
// anybody is asked. A release that is only shown is not served.
func (d Decision) Shown() bool { return d.Effect == Allow || d.Effect == Hold }

// Admitted reports whether something admits it, so that it is more than shown.
func (d Decision) Admitted() bool { return d.Allowed() && !d.Unadmitted }

// CommandInput is what rules judge: a command that we start (argv joined by
// spaces), code handed over as text, or a tool's name with its arguments. A nil field is
// missing, and a rule on a missing field never matches.
type CommandInput struct {
	Command   *string
	Code      *string
	Tool      *string
	Arguments *Arguments // a tool's
	// Findings is what was found in code, as pycode.Text writes it; nil: it was not looked
	// into.
	Findings *string
	// Over tells that there is no more time to look, so that the rule that is being looked at refuses; nil: never.
	Over func() bool
}
