package records

import (
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// ObservedOutcome is the outcome of the record that a policy which only observes would have
// refused what it let through by d.
func ObservedOutcome(d policy.Decision) audit.Outcome {
	if d.Would == policy.Hold {
		return audit.WouldHold
	}
	return audit.WouldDeny
}

// Observed tells whether a record is of what was let through, and would have been refused.
func Observed(r audit.Record) bool {
	return r.Outcome == audit.WouldDeny || r.Outcome == audit.WouldHold
}

// letThrough follows the reason of what was let through.
const letThrough = "; it was let through, since the policy only observes (mode: observe)"
