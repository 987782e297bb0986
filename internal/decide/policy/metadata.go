package policy

import "github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"

// metadata judges what resolvers read of releases that they may then not want.
// Nothing is installed by it, so the name decides; without a version it alone.
func (j *Judge) metadata(f FileFacts) Decision {
	r, _ := pkgref.ParseVersion(j.ecosystem, f.Version)
	if f.Version != "" && !r.Canonical() {
		return j.notCanonical()
	}
	if d := j.refusedName(); d != nil {
		return *d
	}
	if d := j.lockedName(); d != nil {
		return *d
	}
	if pins := j.pinned(r, true); f.Version != "" && compareDigests(pins, f.Digests, func(p pin) []string { return p.Metadata }) == digestOther {
		return j.otherDigest(pins[0], j.pinnedVersions())
	}
	allowed := Decision{Effect: Allow, Reason: "metadata of " + shortName(j.name) + " may be read", WantedBy: edgesOf(j.edges)}
	switch {
	case len(j.pins) > 0:
		allowed.Rule, allowed.ResolvedBy = ruleLockfile, ByLockfile
	case len(j.allowed) > 0:
		allowed.Rule, allowed.ResolvedBy = entryRule("allowed_packages", j.ecosystem, j.name), ByAllowlist
	case len(j.edges) > 0:
		allowed.Rule, allowed.ResolvedBy = ruleWanted, ByDependency
		allowed.Unadmitted = j.admittingEdge() == nil && j.unlisted(nil).Effect == Hold && !j.policy.observes
	default:
		d := j.unlisted(nil)
		if d.Effect == Deny || d.Effect == Hold && j.policy.observes {
			if j.about.Lookalike == nil {
				s := suggestion{ecosystem: j.ecosystem, name: j.name}
				if f.Version != "" {
					s = addition(j.ecosystem, j.name, r)
				}
				d.Suggest = s.document()
			}
			return d
		}
		allowed.Rule, allowed.ResolvedBy, allowed.Unadmitted = d.Rule, d.ResolvedBy, d.Effect == Hold
	}
	return allowed
}

// ruleWanted: verified metadata requires the name.
const ruleWanted = "packages.metadata"
