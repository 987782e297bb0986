package records

import "github.com/cofferdam-dev/cofferdam/internal/decide/audit"

// custody says who sees to it that a record is not lost which the log does not take.
type custody int

const (
	// whoeverAsked: what the record tells of happens only once it is on record. The error is told to
	// whoever asked for that, and it does not happen.
	whoeverAsked custody = iota
	// theBook: it has happened. The Book keeps the record and writes it later.
	theBook
	// theCounts: it stands for repeats, which the Book goes on counting until they are on record.
	theCounts
	// theLives: the end of a sandbox, which comes after all else that is owed of it. Admission's Lives
	// keep it, and the daemon's journal of sandboxes does.
	theLives
)

// custodyOf says who sees to a record. Both switches name all kinds and all outcomes, so that a new one
// is thought of here.
func custodyOf(r audit.Record) custody {
	if r.Detail[DetailEvent] == EventRepeats {
		return theCounts
	}
	switch r.Kind {
	case audit.KindSandbox:
		if r.Outcome == audit.Finished {
			return theLives
		}
	case audit.KindBuild:
		if r.Outcome == audit.Finished { // a template is there only once that is on record
			return whoeverAsked
		}
	case audit.KindPackage, audit.KindCommand, audit.KindNetwork, audit.KindDaemon, audit.KindTool, audit.KindFinding, audit.KindFile, audit.KindApproval, audit.KindLog:
	}
	switch r.Outcome {
	case audit.Aborted, audit.Built, audit.Installed, audit.Blocked, audit.Failed, audit.Finished, audit.Exceeded, audit.Alarm,
		audit.Frozen, audit.Thawed, audit.Paused, audit.Resumed, audit.Adopted, audit.Extended:
		return theBook
	case audit.Served, audit.Asked, audit.Shown, audit.Withheld, audit.Pending, audit.WouldDeny, audit.WouldHold, audit.Started, audit.Found,
		audit.Approved, audit.Denied, audit.Expired, audit.Superseded, audit.Planned, audit.Snapshotted, audit.Restored, audit.Used, audit.Narrowed,
		audit.Sealed, audit.Erased, audit.Rotated:
	}
	return whoeverAsked
}
