package records

import "github.com/cofferdam-dev/cofferdam/internal/decide/audit"

// quota is what bounds how many records a guest has the log take. Each is apart: who uses one up keeps
// nothing of another from the record.
type quota int

const (
	// free: commands, the sandbox's own life, and what has happened. Of that there is at most as much
	// as there was of what began it, or as the host looks for.
	free quota = iota
	// ofRequests: what the guest asks for, and what it is refused. Past it the run is cut.
	ofRequests
	// ofQuestions: what upstreams are asked for it.
	ofQuestions
	// ofFinds: packages on its disk that nobody served, of which it can plant any number. Past it the
	// run is cut, and what it planted has its alarm.
	ofFinds
	// ofAlarms: refusals that are alarms. Past it one is a refusal like others.
	ofAlarms

	quotas // how many there are
)

// questionsFor is how many different questions may be on record for each other record that may be:
// reading what the packages of a policy require asks several of each, and is nothing that the
// guest has done.
const questionsFor = 3

// maxAlarms bounds the refusals of one sandbox that are on record as alarms although its run is cut.
const maxAlarms = 500

// quotaOf is the quota of a record. Of what has happened only a refusal is the guest's to cause, and
// what it plants on its disk; all else that the Book has custody of is free.
func quotaOf(r audit.Record) quota {
	switch {
	case r.Kind != audit.KindPackage && r.Kind != audit.KindNetwork && r.Kind != audit.KindTool, r.Detail[DetailEvent] == EventRepeats:
		return free
	case r.Outcome == audit.Asked:
		return ofQuestions
	case custodyOf(r) != theBook:
		return ofRequests
	case isRefusal(r) && r.Detail[DetailAlarm] != "":
		return ofAlarms
	case isRefusal(r):
		return ofRequests
	case r.Outcome == audit.Installed && r.SHA256 == "":
		return ofFinds
	default:
		return free
	}
}

// isRefusal tells a refusal from the end of a call that failed, and from a disk that was not listed.
func isRefusal(r audit.Record) bool {
	return r.Outcome == audit.Blocked || r.Outcome == audit.Failed && r.Kind != audit.KindTool && !r.GuestClaimed
}

// charged is the quota in which a record is counted; mu is held.
func (b *Book) charged(r audit.Record) quota {
	of := quotaOf(r)
	if of == ofAlarms && b.used[ofAlarms] >= maxAlarms {
		return ofRequests
	}
	return of
}

// isPast reports whether a quota is used up; mu is held.
func (b *Book) isPast(of quota) bool {
	switch of {
	case ofRequests, ofFinds:
		return b.used[of] >= b.config.Limits.Records
	case ofQuestions:
		return b.used[of] >= questionsFor*b.config.Limits.Records
	default:
		return false
	}
}
