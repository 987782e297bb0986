package audit

import "maps"

// Keys of Record.Detail that the log itself reads.
const (
	// DetailAlarm is "true" of each alarm, and of what was installed although there is one
	// about it.
	DetailAlarm = "alarm"
	// DetailEvent tells records of one kind and outcome apart.
	DetailEvent = "event"
	// DetailRuns has, with spaces between, the runs of an alarm that an earlier version found in the log later: one record
	// told of all runs of an owner. It is the record's Run, too, where there is one.
	DetailRuns = "runs"
)

// EventRepeats is the DetailEvent of a record that stands for repeats of an earlier one.
const EventRepeats = "repeats"

const detailTrue = "true"

// IsAlarm is the one place that decides which records are alarms: somebody has to look, since
// bytes are not what they must be, a secret was about to leave, something is on a disk that
// nobody served, or the log itself or its clock is not to be believed. The run's summary, the
// metrics, the operator's log, the webhooks and the reports ask it. Each alarm is one record:
// what repeats a refusal, and what was installed although there is an alarm about it, are none
// of their own.
func (r Record) IsAlarm() bool {
	return r.Outcome == Alarm || r.Outcome != Installed && r.Detail[DetailAlarm] == detailTrue && r.Detail[DetailEvent] != EventRepeats
}

// ConcernsAlarm tells that the record is an alarm, or of what there is one about.
func (r Record) ConcernsAlarm() bool { return r.IsAlarm() || r.Detail[DetailAlarm] == detailTrue }

// markAlarm gives each alarm the one detail that who reads the log elsewhere looks for.
func markAlarm(r Record) Record {
	if !r.IsAlarm() || r.Detail[DetailAlarm] == detailTrue {
		return r
	}
	if r.Detail = maps.Clone(r.Detail); r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[DetailAlarm] = detailTrue
	return r
}
