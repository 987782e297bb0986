package admission

import (
	"cmp"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
)

// toolLines are the tools of a summary, by name.
type toolLines struct{ list []ToolUse }

// add takes a record of a tool.
func (l *toolLines) add(r audit.Record) {
	t := l.tool(cmp.Or(r.Detail[records.DetailTool], "(others)"))
	switch r.Outcome { //nolint:exhaustive // others are of no call
	case audit.Started:
		t.Calls++
	case audit.Failed:
		t.Failed++
		t.Reason = cmp.Or(t.Reason, r.Reason)
	case audit.Blocked, audit.Exceeded:
		t.Refused += max(1, r.Count)
		t.Reason = cmp.Or(t.Reason, r.Reason)
	}
}

func (l *toolLines) tool(name string) *ToolUse {
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
