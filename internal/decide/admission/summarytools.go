package admission

import (
	"cmp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// toolLines are the tools of a summary, by name.
type toolLines struct {
	list  []ToolUse
	waits map[string]heldCall // by request; those that nobody has answered
}

// heldCall is what waits as one request.
type heldCall struct {
	times  int
	reason string
}

// addRecord takes a record of a tool.
func (l *toolLines) addRecord(r audit.Record) {
	t := l.toolLine(cmp.Or(r.Detail[records.DetailTool], "(others)"))
	if r.Outcome != audit.Pending {
		l.clearWaiting(t, r.Approval)
	}
	switch r.Outcome { //nolint:exhaustive // others are of no call
	case audit.Started:
		t.Calls++
	case audit.Failed:
		t.Failed++
		t.Reason = withReason(t.Reason, r.Reason)
	case audit.Blocked, audit.Exceeded:
		t.Refused += max(1, r.Count)
		t.Reason = withReason(t.Reason, r.Reason)
	case audit.Pending:
		l.countWaiting(t, r)
	}
}

// countWaiting counts a call as refused that waits: if nobody answers, it was.
func (l *toolLines) countWaiting(t *ToolUse, r audit.Record) {
	if l.waits == nil {
		l.waits = map[string]heldCall{}
	}
	held, known := l.waits[r.Approval]
	if known && held.times == 0 {
		return // it repeats what was answered since
	}
	held.times, held.reason = held.times+max(1, r.Count), r.Reason+records.WaitedAs(r.Approval)
	l.waits[r.Approval] = held
	t.Refused += max(1, r.Count)
	t.Reason = withReason(t.Reason, held.reason)
}

// clearWaiting takes back that a call waits, since a record of it tells that it was answered.
func (l *toolLines) clearWaiting(t *ToolUse, request string) {
	held := l.waits[request]
	if held.times == 0 {
		return
	}
	l.waits[request] = heldCall{}
	t.Refused -= held.times
	t.Reason = withoutReason(t.Reason, held.reason)
}

func (l *toolLines) toolLine(name string) *ToolUse {
	i := slices.IndexFunc(l.list, func(t ToolUse) bool { return t.Name == name })
	if i < 0 {
		i = len(l.list)
		l.list = append(l.list, ToolUse{Name: name})
	}
	return &l.list[i]
}

func (l *toolLines) sorted() []ToolUse {
	slices.SortFunc(l.list, func(a, b ToolUse) int { return cmp.Compare(a.Name, b.Name) })
	return l.list
}
