package policy

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Policy is what a document means. It never changes and may be shared by
// goroutines; make one with Parse. The zero Policy denies every package and
// does not judge commands.
type Policy struct {
	source       string
	observes     bool // it records what it would refuse, and lets it through: see observe
	digest       string
	name         string
	version      string
	isolation    string
	resources    Resources
	workspace    Workspace
	mounts       []Mount
	network      hostList
	credentials  []Credential
	unlisted     Effect // of names that network lacks: "" is Deny
	proxy        bool
	published    []portRange // sorted, none overlaps
	ingress      bool        // the document says which ports are published, none perhaps
	tools        []string
	toolsGiven   bool
	toolCalls    int64 // that a sandbox may make, if they are limited
	callsLimited bool
	packages     packageRules
	namespaces   []Namespace
	commands     commandRules
	scanning     Scanning // of this document alone
	explanations []Explanation
	narrowed     []*Policy // which must agree; see NarrowedBy
}

// Resources are the limits that a document asks for; a zero field is not
// limited by the document.
type Resources struct {
	CPU         float64 // cores
	MemoryBytes int64
	DiskBytes   int64
	Pids        int64
	Timeout     time.Duration // of one command
}

// Workspace is the directory in the sandbox that the agent works in; Path ""
// if the document names none.
type Workspace struct {
	Path     string
	ReadOnly bool
}

// Mount shows a host path in the sandbox. The paths are absolute and clean;
// whether the source exists and may be mounted is the host's to say.
type Mount struct {
	Source      string
	Destination string
	ReadWrite   bool
}

// Explanation says what one key of a document means. Enforced is false for
// what this version does not do: Meaning then says what stays closed. Line 0
// is a key that the document lacks.
type Explanation struct {
	Line     int
	Column   int
	Key      string
	Meaning  string
	Enforced bool
}

// packageRules is the part that judges packages.
type packageRules struct {
	byDefault       Effect // "" is Deny
	defaultGiven    bool
	planning        bool   // byDefault is Deny, and a plan is made: see Planning
	sdist           Effect // "" is Deny; throwaway is possible
	scripts         Effect // "" is Deny; throwaway is possible
	toolchains      Effect // "" is Deny
	similar         Effect // "" is Deny
	system          Effect // "" is Deny; never Hold
	vulnerabilities vulnerabilityRules
	onHold          HoldMode
	maxWait         time.Duration // of HoldWait
	hashes          bool          // a strong digest is demanded
	minAge          time.Duration
	ageSource       ageSource
	unaccounted     Unaccounted // "" is an alarm
	lock            LockRules
	locked          map[pkgref.Ecosystem]bool // whose lockfiles the document names
	allowed         map[packageKey][]listEntry
	blocked         map[packageKey][]listEntry
}

type packageKey struct {
	ecosystem pkgref.Ecosystem
	name      string
}

// ageSource is whose word on a file's publication counts.
type ageSource string

const (
	ageTrusted   ageSource = "trusted"    // the upstream's
	ageFirstSeen ageSource = "first-seen" // ours, when we saw the file first
	ageIgnored   ageSource = "ignore"     // no age is judged
)

// Name is the document's name, "" if it has none.
func (p *Policy) Name() string { return p.name }

// Version is the document's version, "" if it has none.
func (p *Policy) Version() string { return p.version }

// Source is where the document came from, as given to Parse.
func (p *Policy) Source() string { return p.source }

// Digest is "sha256:<hex>" of the document's bytes.
func (p *Policy) Digest() string { return p.digest }

// Isolation names the engine that the document demands, "" if it does not.
func (p *Policy) Isolation() string { return p.isolation }

// Resources are the document's limits.
func (p *Policy) Resources() Resources { return p.resources }

// NetworkProxy tells whether tools inside are offered a proxy. It leads where connections
// do that were not made through it.
func (p *Policy) NetworkProxy() bool { return p.proxy }

// Workspace is the agent's directory.
func (p *Policy) Workspace() Workspace { return p.workspace }

// Mounts are the host paths that the document shows.
func (p *Policy) Mounts() []Mount { return slices.Clone(p.mounts) }

// NetworkAllowlist are the names that the document has reachable; Host judges by them,
// and by those of the policies that narrow.
func (p *Policy) NetworkAllowlist() []NetworkPattern {
	var names []NetworkPattern
	for _, entry := range p.network {
		names = append(names, entry.NetworkPattern)
	}
	return names
}

// MinReleaseAge is how old a file must be, 0 if age is not judged. With an age
// a verdict changes as time passes: do not keep it for long.
func (p *Policy) MinReleaseAge() time.Duration {
	if p.packages.ageSource == ageIgnored {
		return 0
	}
	return p.packages.minAge
}

// AgedFrom is the time from which a file's age counts under this policy; zero
// if it is not known.
func (p *Policy) AgedFrom(f FileFacts) time.Time {
	if p.packages.ageSource == ageFirstSeen {
		return f.FirstSeen
	}
	return f.Published
}

// AgesFromFirstSeen tells that a file's age counts from when this installation saw
// it first.
func (p *Policy) AgesFromFirstSeen() bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.packages.minAge > 0 && l.packages.ageSource == ageFirstSeen })
}

// NeedsTimes tells that files are refused for want of an upstream's or a
// witness's time.
func (p *Policy) NeedsTimes() bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.packages.minAge > 0 && l.packages.ageSource == ageTrusted })
}

// UsesEdges tells whether it matters what packages of an ecosystem require: to
// admit it, or to say who wanted what is refused.
func (p *Policy) UsesEdges(ecosystem pkgref.Ecosystem) bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool { return l.packages.byDefault != Allow }) || p.AdmitsDependencies(ecosystem)
}

// AdmitsDependencies tells whether an entry of an ecosystem's allowlist has
// with_dependencies.
func (p *Policy) AdmitsDependencies(ecosystem pkgref.Ecosystem) bool {
	return slices.ContainsFunc(p.layers(), func(l *Policy) bool {
		for key, entries := range l.packages.allowed {
			if key.ecosystem == ecosystem && slices.ContainsFunc(entries, func(e listEntry) bool { return e.withDependencies }) {
				return true
			}
		}
		return false
	})
}

// Roots are the names of an ecosystem's allowlist, sorted: where a walk to what they
// require begins.
func (p *Policy) Roots(ecosystem pkgref.Ecosystem) []string {
	roots := map[string]bool{}
	for _, l := range p.layers() {
		for key := range l.packages.allowed {
			if key.ecosystem == ecosystem {
				roots[key.name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(roots))
}

// Lockfiles is what the document says of lockfiles.
func (p *Policy) Lockfiles() LockRules {
	rules := p.packages.lock
	rules.Files = slices.Clone(rules.Files)
	return rules
}

// Namespaces are the names that the document gives to upstreams.
func (p *Policy) Namespaces() []Namespace { return slices.Clone(p.namespaces) }

// Check explains the document key by key, in the order of its lines; what it
// lacks comes first.
func (p *Policy) Check() []Explanation { return slices.Clone(p.explanations) }

// Notes has a line for each thing that the document asks for, that this
// version does not enforce, and that therefore stays closed; and one if it
// judges code, since that is only known where it is handed over as text.
func (p *Policy) Notes() []string {
	var notes []string
	if p.observes {
		notes = append(notes, "mode: the policy only observes; what it would refuse is recorded and let through")
	}
	for _, e := range p.explanations {
		if !e.Enforced {
			notes = append(notes, fmt.Sprintf("%s (line %d, column %d): %s", e.Key, e.Line, e.Column, e.Meaning))
		}
	}
	if slices.ContainsFunc(p.commands.rules, func(r commandRule) bool { return r.field == "code" }) {
		notes = append(notes, "rules: code is judged where it is handed over as text, as to python3 -c; files are not inspected")
	}
	return notes
}
