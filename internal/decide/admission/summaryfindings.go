package admission

import (
	"cmp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// FindingLine is what was found by one rule in one place of what left a sandbox.
type FindingLine struct {
	What, Where string
	Action      string // report, redact, block, would_redact or would_block
	Count       int    // different values
}

// findingLines are the findings of a summary, in the order of their first.
type findingLines []FindingLine

// addFinding counts a value; its repeats are no other ones.
func (l *findingLines) addFinding(r audit.Record) {
	if r.Detail[records.DetailEvent] == records.EventRepeats {
		return
	}
	line := FindingLine{What: cmp.Or(r.Detail[records.DetailName], "(others)"), Where: r.Detail[records.DetailWhere], Action: r.Detail[records.DetailAction]}
	i := slices.IndexFunc(*l, func(f FindingLine) bool {
		return f.What == line.What && f.Where == line.Where && f.Action == line.Action
	})
	if i < 0 {
		i = len(*l)
		*l = append(*l, line)
	}
	(*l)[i].Count++
}
