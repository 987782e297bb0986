package policy

import (
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// The answers of a Judge. Reasons are fixed text, names and the document's own
// version texts; they leave the judged version out, so that the many versions
// that one thing refuses share one decision.

// maxReason fits an HTTP reason phrase with room for a prefix.
const maxReason = 150

// short keeps a name from crowding out the reason.
func short(name string) string { return clip(name, 48) }

func reason(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	if len(s) > maxReason {
		s = s[:maxReason-3] + "..."
	}
	return s
}

// entryRule is the stable id of a name's entries on a list.
func entryRule(list string, ecosystem pkgref.Ecosystem, name string) string {
	return list + "." + string(ecosystem) + "." + name
}

// through reports whether id is an entry's with with_dependencies, and whether
// such an entry admits pre-releases.
func (p *Policy) through(ecosystem pkgref.Ecosystem, id string) (admits, prereleases bool) {
	prefix := entryRule("allowed_packages", ecosystem, "")
	if len(id) <= len(prefix) || id[:len(prefix)] != prefix {
		return false, false
	}
	for _, e := range p.packages.allowed[packageKey{ecosystem, id[len(prefix):]}] {
		if e.withDependencies {
			admits = true
			prereleases = prereleases || e.prereleases
		}
	}
	return admits, prereleases
}

func (e *entry) admits(r release) bool {
	return e.versions.match(r) && e.limit.match(r) && (e.prereleases || !r.preRelease())
}

func (e *judgedEdge) admitsRelease(r release) bool {
	return e.admits && e.readable && (e.prereleases || !r.preRelease())
}

func (j *Judge) entryThrough(e *entry) string {
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
func admittingThrough(wanted []judgedEdge, r release) string {
	for _, e := range wanted {
		if e.admitsRelease(r) {
			return e.edge.Through
		}
	}
	return ""
}

func edgesOf(wanted []judgedEdge) []Edge {
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

func (j *Judge) blockedDecision(b entry) Decision {
	d := Decision{Effect: Deny, Rule: entryRule("blocked_packages", j.ecosystem, j.name), ResolvedBy: ByBlocklist}
	d.Reason = short(j.name) + " is on the blocklist"
	if b.versionText != "" {
		d.Reason = reason("this version of %s is on the blocklist (%s)", short(j.name), clip(b.versionText, 40))
	}
	return d
}

func (j *Judge) lockedDecision() Decision {
	return Decision{
		Effect: Deny, Rule: "packages.lockfile", ResolvedBy: ByLockfile,
		Reason: reason("packages.lockfile is frozen for %s, and lockfiles are not enforced yet, so nothing is allowed", j.ecosystem),
	}
}

func (j *Judge) dependencyDecision(e judgedEdge) Decision {
	return Decision{
		Effect: Allow, Rule: e.edge.Through + ".with_dependencies", ResolvedBy: ByDependency, Through: e.edge.Through,
		Reason: reason("%s is a dependency of %s, admitted by with_dependencies", short(j.name), short(e.edge.Parent.Name)),
	}
}

// defaultDecision is for a name that no list has.
func (j *Judge) defaultDecision(wanted []judgedEdge) Decision {
	d := Decision{Effect: Deny, Rule: "packages.default", ResolvedBy: ByDefault, WantedBy: edgesOf(wanted)}
	switch j.policy.packages.byDefault {
	case Allow:
		d.Effect = Allow
		d.Reason = short(j.name) + " is on no list, and packages.default is allow"
	case Hold:
		d.Effect = Hold
		d.Reason = short(j.name) + " is on no list and waits for approval; packages.default is hold"
	case Deny:
		fallthrough
	default:
		d.Reason = short(j.name) + " is not on the allowlist"
	}
	if d.Effect != Allow && len(wanted) > 0 {
		d.Reason = reason("%s; %s requires it", d.Reason, short(wanted[0].edge.Parent.Name))
	}
	return d
}

// entryDecision is for a release that an entry admits.
func (j *Judge) entryDecision(e *entry, r release, wanted []judgedEdge) Decision {
	d := Decision{
		Effect: Allow, Rule: entryRule("allowed_packages", j.ecosystem, j.name), ResolvedBy: ByAllowlist,
		Reason: short(j.name) + " is on the allowlist", WantedBy: edgesOf(wanted),
	}
	if d.Through = j.entryThrough(e); d.Through == "" {
		d.Through = admittingThrough(wanted, r)
	}
	return d
}

// outsideDecision is for a name on the allowlist whose entries do not admit
// the release, whoever else wants it; limit is whichLimit's.
func (j *Judge) outsideDecision(limit string, r release, wanted []judgedEdge) Decision {
	return Decision{
		Effect: Deny, ResolvedBy: ByAllowlist, WantedBy: edgesOf(wanted),
		Rule:    entryRule("allowed_packages", j.ecosystem, j.name) + "." + limit,
		Reason:  j.limitReason(limit),
		Suggest: widening(j.ecosystem, j.name, r).document(),
	}
}

// The keys of an entry that can keep a release out.
const (
	limitPrereleases = "prereleases"
	limitVersion     = "version"
	limitMax         = "max_version"
)

// whichLimit is the key to blame; of several entries, the versions as a whole.
func (j *Judge) whichLimit(r release) string {
	for i := range j.allowed {
		if e := &j.allowed[i]; e.versions.match(r) && e.limit.match(r) {
			return limitPrereleases
		}
	}
	if len(j.allowed) == 1 && j.allowed[0].versions.match(r) {
		return limitMax
	}
	return limitVersion
}

func (j *Judge) limitReason(limit string) string {
	name := short(j.name)
	switch {
	case limit == limitPrereleases:
		return reason("this version of %s is a pre-release, and its entry lacks prereleases: true", name)
	case len(j.allowed) > 1:
		return reason("this version of %s is outside the versions that its %d entries allow", name, len(j.allowed))
	case limit == limitMax:
		return reason("this version of %s is above max_version %s", name, clip(j.allowed[0].limitText, 30))
	}
	return reason("this version of %s is outside version %s", name, clip(j.allowed[0].versionText, 60))
}
