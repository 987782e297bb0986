package policy

import (
	"fmt"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// The answers of a Judge. Reasons are fixed text, names and the document's own
// version texts; they leave the judged version out, so that the many versions
// that one thing refuses share one decision.

// maxReason fits an HTTP reason phrase with room for a prefix.
const maxReason = 150

// shortName keeps a name from crowding out the reason.
func shortName(name string) string { return plainASCII(name, 48) }

func reason(format string, args ...any) string {
	return text.Shorten(fmt.Sprintf(format, args...), maxReason)
}

// entryRule is the stable id of a name's entries on a list.
func entryRule(list string, ecosystem pkgref.Ecosystem, name string) string {
	return list + "." + string(ecosystem) + "." + name
}

// through reports whether id is an entry's with with_dependencies, and whether every
// such entry admits pre-releases: which of them let in what requires another is not known.
func (p *Policy) through(ecosystem pkgref.Ecosystem, id string) (admits, prereleases bool) {
	prefix := entryRule("allowed_packages", ecosystem, "")
	if len(id) <= len(prefix) || id[:len(prefix)] != prefix {
		return false, false
	}
	for _, e := range p.packages.allowed[packageKey{ecosystem, id[len(prefix):]}] {
		if e.withDependencies {
			prereleases = e.prereleases && (prereleases || !admits)
			admits = true
		}
	}
	return admits, prereleases
}

func (e *listEntry) coversVersion(r pkgref.Version) bool {
	return rangeHas(e.versions, r, e.prereleases) && e.limit.admits(r)
}

// admits: a pre-release also by a node range that names it.
func (e *listEntry) admits(r pkgref.Version) bool {
	return e.coversVersion(r) && (e.prereleases || !r.PreRelease() || e.versions.SelectsPreReleases())
}

// satisfiedBy is also true if nobody can read the specifier.
func (e *judgedEdge) satisfiedBy(r pkgref.Version) bool {
	return !e.readable || rangeHas(e.versions, r, e.prereleases)
}

// admitsRelease is asked about an edge that the release satisfies.
func (e *judgedEdge) admitsRelease(r pkgref.Version) bool {
	return e.admits && e.readable && (e.prereleases || !r.PreRelease() || e.versions.SelectsPreReleases() || e.namesPreRelease(r))
}

// namesPreRelease tells that a requirement takes a pre-release by the ecosystem's own rule.
func (e *judgedEdge) namesPreRelease(r pkgref.Version) bool { return e.readable && e.versions.Takes(r) }

func (j *Judge) entryThrough(e *listEntry) string {
	if e.withDependencies {
		return entryRule("allowed_packages", j.ecosystem, j.name)
	}
	return ""
}

func (j *Judge) ownThrough() string {
	for i := range j.allowed {
		if t := j.entryThrough(&j.allowed[i]); t != "" {
			return t
		}
	}
	return ""
}

// admittingThrough is the entry through which an edge admits the release too:
// an entry of its own does not cut a package's dependencies off.
func admittingThrough(wanted []*judgedEdge, r pkgref.Version) string {
	for _, e := range wanted {
		if e.admitsRelease(r) {
			return e.edge.Through
		}
	}
	return ""
}

func edgesOf(wanted []*judgedEdge) []Edge {
	if len(wanted) == 0 {
		return nil
	}
	edges := make([]Edge, 0, min(len(wanted), maxEdges))
	for _, e := range wanted[:min(len(wanted), maxEdges)] {
		edges = append(edges, e.edge)
	}
	return edges
}

func (j *Judge) blockedWhole() bool {
	for _, b := range j.blocked {
		if b.versionText == "" {
			return true
		}
	}
	return false
}

func (j *Judge) blockedDecision(b listEntry) Decision {
	d := Decision{Effect: Deny, Rule: entryRule("blocked_packages", j.ecosystem, j.name), ResolvedBy: ByBlocklist}
	d.Reason = shortName(j.name) + " is on the blocklist"
	if b.versionText != "" {
		d.Reason = reason("this version of %s is on the blocklist (%s)", shortName(j.name), plainASCII(b.versionText, 40))
	}
	return d
}

func (j *Judge) dependencyDecision(e *judgedEdge) Decision {
	return Decision{
		Effect: Allow, Rule: e.edge.Through + ".with_dependencies", ResolvedBy: ByDependency, Through: e.edge.Through,
		Reason: reason("%s is a dependency of %s, admitted by with_dependencies", shortName(j.name), shortName(e.edge.Parent.Name)),
	}
}

const ruleDefault = "packages.default"

// ByNoList tells that a refusal or a hold, which may only be observed, is there for want of
// any entry about the package: one more requirement that becomes known may change it.
func (d Decision) ByNoList() bool {
	switch d.Rule {
	case ruleDefault, rulePrereleases, ruleToolchains, ruleSimilar:
		return !d.Allowed() || d.Would != ""
	}
	return false
}

// ByLikeness tells that a refusal or a hold is for the name alone, which looks like a
// popular one: what an admitted release requires is not judged so.
func (d Decision) ByLikeness() bool {
	return d.Rule == ruleSimilar && (!d.Allowed() || d.Would != "")
}

// Outlined reports whether resolvers may read what it requires though it is refused: for
// its name alone, since they may come later to what requires it.
func (d Decision) Outlined() bool { return d.Effect == Deny && d.ByLikeness() }

// Rules that a requirement of something admitted goes before, as it does before the default.
const (
	rulePrereleases = "packages.prereleases"
	ruleToolchains  = "packages.toolchains"
	ruleSimilar     = "packages.similar_names"
)

// defaultDecision is for a name that no list has.
func (j *Judge) defaultDecision(wanted []*judgedEdge) Decision {
	d := Decision{Effect: Deny, Rule: ruleDefault, ResolvedBy: ByDefault, WantedBy: edgesOf(wanted)}
	switch j.policy.packages.byDefault {
	case Allow:
		d.Effect = Allow
		d.Reason = shortName(j.name) + " is on no list, and packages.default is allow"
	case Hold:
		d.Effect = Hold
		d.Reason = shortName(j.name) + " is on no list and waits for approval; packages.default is hold"
		if j.policy.packages.planning {
			d.Reason = shortName(j.name) + " is not on the allowlist"
		}
	case Deny:
		fallthrough
	default:
		d.Reason = shortName(j.name) + " is not on the allowlist"
	}
	if d.Effect != Allow && len(wanted) > 0 {
		d.Reason = reason("%s; %s", d.Reason, requires(wanted))
	}
	return d
}

func (j *Judge) toolchainDecision(wanted []*judgedEdge) Decision {
	d := Decision{Effect: Deny, Rule: ruleToolchains, ResolvedBy: ByToolchain, WantedBy: edgesOf(wanted)}
	switch j.policy.packages.toolchains {
	case Allow:
		d.Effect = Allow
		d.Reason = shortName(j.name) + " is a toolchain, and packages.toolchains is allow"
	case Hold:
		d.Effect = Hold
		d.Reason = shortName(j.name) + " is a toolchain and waits for approval; packages.toolchains is hold"
	case Deny:
		d.Reason = shortName(j.name) + " is a toolchain, and packages.toolchains is deny; only that key or an entry with its name lets it in"
	default:
		d.Reason = shortName(j.name) + " is a toolchain, and packages.toolchains is not set; only that key or an entry with its name lets it in"
	}
	return d
}

// lookalikeDecision is for a name near to a popular one, which the default, d,
// would deny, hold or allow.
func (j *Judge) lookalikeDecision(d Decision) Decision {
	near := reason("%s looks like %s (%s)", shortName(j.name), shortName(j.about.Lookalike.Name), plainASCII(j.about.Lookalike.How, 40))
	if d.Effect == Deny || j.policy.packages.planning {
		d.Reason = reason("%s is not on the allowlist; it looks like %s", shortName(j.name), shortName(j.about.Lookalike.Name))
		return d
	}
	refusal := Decision{Effect: Deny, Rule: ruleSimilar, ResolvedBy: ByAdvisory, WantedBy: d.WantedBy}
	switch j.policy.packages.similar {
	case Allow:
		return d
	case Hold:
		refusal.Effect = Hold
		refusal.Reason = reason("%s; packages.similar_names is hold", near)
	case Deny:
		refusal.Reason = reason("%s; packages.similar_names is deny", near)
	default:
		refusal.Reason = reason("%s; packages.similar_names is not set", near)
	}
	return stricter(d, refusal)
}

func (j *Judge) namespaceDecision() Decision {
	d := Decision{Effect: Deny, Rule: "namespaces", ResolvedBy: ByNamespace}
	d.Reason = reason("%s is a private name, and this upstream is not the one that it belongs to", shortName(j.name))
	return d
}

// entryDecision is for a release that an entry admits.
func (j *Judge) entryDecision(e *listEntry, r pkgref.Version, wanted []*judgedEdge) Decision {
	d := Decision{
		Effect: Allow, Rule: entryRule("allowed_packages", j.ecosystem, j.name), ResolvedBy: ByAllowlist,
		Reason: shortName(j.name) + " is on the allowlist", WantedBy: edgesOf(wanted),
	}
	if d.Through = j.entryThrough(e); d.Through == "" {
		d.Through = admittingThrough(wanted, r)
	}
	return d
}

// outsideDecision is for a name on the allowlist whose entries do not admit
// the release, whoever else wants it; limit is whichLimit's.
func (j *Judge) outsideDecision(limit string, r pkgref.Version, wanted []*judgedEdge) Decision {
	return Decision{
		Effect: Deny, ResolvedBy: ByAllowlist, WantedBy: edgesOf(wanted),
		Rule:    entryRule("allowed_packages", j.ecosystem, j.name) + "." + limit,
		Reason:  j.limitReason(limit),
		Suggest: j.widened(r).document(),
	}
}

// widened is the further entry for a release that those of its name do not admit. Where these all come with
// what they require, it does too: else the release is let in and can't be installed.
func (j *Judge) widened(r pkgref.Version) suggestion {
	s := widening(j.ecosystem, j.name, r)
	s.withDependencies = !slices.ContainsFunc(j.allowed, func(e listEntry) bool { return !e.withDependencies })
	return s
}

// The keys of an entry that can keep a release out.
const (
	limitPrereleases = "prereleases"
	limitVersion     = "version"
	limitMax         = "max_version"
)

// whichLimit is the key to blame; of several entries, the versions as a whole.
func (j *Judge) whichLimit(r pkgref.Version) string {
	for i := range j.allowed {
		if e := &j.allowed[i]; r.PreRelease() && rangeHas(e.versions, r, true) && e.limit.admits(r) {
			return limitPrereleases
		}
	}
	if len(j.allowed) == 1 && rangeHas(j.allowed[0].versions, r, true) {
		return limitMax
	}
	return limitVersion
}

func (j *Judge) limitReason(limit string) string {
	name := shortName(j.name)
	switch {
	case limit == limitPrereleases:
		return reason("this version of %s is a pre-release, and its entry lacks prereleases: true", name)
	case len(j.allowed) > 1:
		return reason("this version of %s is outside the versions that its %d entries allow", name, len(j.allowed))
	case limit == limitMax:
		return reason("this version of %s is above max_version %s", name, plainASCII(j.allowed[0].limitText, 30))
	}
	return reason("this version of %s is outside version %s", name, plainASCII(j.allowed[0].versionText, 60))
}
