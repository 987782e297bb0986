package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
)

// flood has a guest refused many times in one way.
type flood struct {
	name string
	ask  func(t *testing.T, c *Controller, i int)
	rule string // of what is past its quota
	kind audit.Kind
	more func(r audit.Record) string
}

func floods() []flood {
	return []flood{
		{"name", func(t *testing.T, c *Controller, i int) {
			t.Helper()
			_, err := c.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: fmt.Sprintf("n%d.evil.example", i)})
			must(t, err)
		}, "quota.names", audit.KindNetwork, func(r audit.Record) string { return r.Detail["name"] }},
		{"request", func(t *testing.T, c *Controller, i int) {
			t.Helper()
			_, err := c.HostRefused(t.Context(), door.HostRefusal{Sandbox: "sb1", Name: "api.example", Port: 443, Rule: door.RuleHostRequest, Reason: "no", Request: fmt.Sprintf("GET /%d", i)})
			must(t, err)
		}, "quota.refusals", audit.KindNetwork, func(r audit.Record) string { return r.Detail["request"] }},
		{"tool", func(t *testing.T, c *Controller, i int) {
			t.Helper()
			_, err := c.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb1", Tool: fmt.Sprintf("t%d", i)})
			must(t, err)
		}, "quota.names", audit.KindTool, func(r audit.Record) string { return r.Detail["tool"] }},
	}
}

// TestNoFloodSilencesAnother: whatever a guest is refused many times, the first refusals of
// any other kind are on record one by one.
func TestNoFloodSilencesAnother(t *testing.T) {
	t.Parallel()
	for _, first := range floods() {
		t.Run(first.name, func(t *testing.T) {
			t.Parallel()
			log := &approvaltest.Log{}
			c := New(Config{Log: log, Limits: Limits{Names: 3}, Calls: CallLimits{PerSecond: 1_000}})
			must(t, c.Register(Run{Sandbox: "sb1", Run: "run1", Policy: parse(t, benchPolicy)}))
			for i := range 10 {
				first.ask(t, c, i)
			}
			for _, other := range floods() {
				for i := range 10 {
					other.ask(t, c, i)
				}
				var named, past []string
				for _, r := range log.All() {
					switch {
					case r.Outcome == audit.Exceeded && r.Rule == other.rule && r.Kind == other.kind:
						past = append(past, r.Reason)
					case other.more(r) != "" && r.Outcome == audit.Blocked && strings.HasPrefix(other.more(r), map[string]string{"name": "n", "request": "GET", "tool": "t"}[other.name]):
						named = append(named, other.more(r))
					}
				}
				if len(slices.Compact(named)) != 3 || len(past) != 1 {
					t.Errorf("after a flood of %ss: of %ss are on record %v, and past the quota %v", first.name, other.name, named, past)
				}
			}
		})
	}
}
