package admission

import (
	"slices"
	"strings"
)

// The words between the reasons of one line of a summary, how many it has at most, and how
// it tells of the others.
const (
	betweenReasons = "; also: "
	mostReasons    = 3
	otherReasons   = "for other reasons, which cofferdam why has"
)

// withReason adds a reason to those of a line of what was refused several times: a line that
// had the first alone would say that it was that each time.
func withReason(reasons, more string) string {
	all := reasonsIn(reasons)
	switch {
	case more == "" || slices.Contains(all, more) || len(all) > mostReasons:
		return reasons
	case len(all) == mostReasons:
		more = otherReasons
	}
	return strings.Join(append(all, more), betweenReasons)
}

// withoutReason takes a reason back.
func withoutReason(reasons, one string) string {
	return strings.Join(slices.DeleteFunc(reasonsIn(reasons), func(r string) bool { return r == one }), betweenReasons)
}

func reasonsIn(reasons string) []string {
	if reasons == "" {
		return nil
	}
	return strings.Split(reasons, betweenReasons)
}
