package admission

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// judgeBundled refuses a file that policy allowed, by d, for a package inside it
// that is known to be malicious. One without a version is if all of its are.
func (c *Controller) judgeBundled(ask door.ArtifactAsk, d policy.Decision) (policy.Decision, error) {
	if c.config.Advisories == nil {
		return d, nil
	}
	for _, text := range ask.Bundled {
		name, version, _ := strings.Cut(text, " ")
		inner := pkgref.Ref{Ecosystem: ask.Package.Ecosystem, Name: name}
		facts, err := c.config.Advisories.Facts(inner)
		if err != nil {
			return d, errUnknown(inner, err)
		}
		if len(facts.Malware) == 0 {
			continue
		}
		// By a policy without lists, which come before advisories: what is inside
		// of a file is not a choice of this run's.
		j := new(policy.Policy).Judge(c.config.Clock.Read().Now, policy.Subject{Package: inner, Malware: facts.Malware})
		verdict := j.Name()
		if version != "" {
			verdict = j.Release(version)
		}
		if verdict.ResolvedBy == policy.ByAdvisory && verdict.Alarm {
			verdict.Reason, verdict.WantedBy, verdict.Pinned = "a package inside the file: "+verdict.Reason, d.WantedBy, d.Pinned
			return verdict, nil
		}
	}
	return d, nil
}
