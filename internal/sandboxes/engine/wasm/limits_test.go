package wasm_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// TestCodeThatHearsNothing: the search for one long text in another never asks whether its time is
// over, so that its module is closed.
func TestCodeThatHearsNothing(t *testing.T) {
	t.Parallel()
	e := start(t)
	r, err := e.Call(t.Context(), engine.Call{Code: `'a'.repeat(1 << 22).indexOf('a'.repeat(1 << 21) + 'b')`, Limits: engine.CallLimits{Time: 50 * time.Millisecond, MemoryBytes: 64 << 20}})
	if err != nil || r.Failure == nil || r.Failure.Kind != engine.FailTime {
		t.Errorf("%q, %+v, %v", r.Value, r.Failure, err)
	}
	if r := came(t, e, "1 + 1"); r.Value != "2" {
		t.Errorf("%+v", r)
	}
}

// TestToolsGiveNoTimeBack: what the code computed before a call of a tool counts after it.
func TestToolsGiveNoTimeBack(t *testing.T) {
	t.Parallel()
	r, err := start(t).Call(t.Context(), engine.Call{
		Code:   `for (;;) { const end = Date.now() + 100; while (Date.now() < end) ; callTool('x') }`,
		Limits: engine.CallLimits{Time: 2 * time.Second, Life: time.Minute},
		Tool:   func(context.Context, string, string) engine.ToolReply { return engine.ToolReply{Result: `1`} },
	})
	if err != nil || r.Failure == nil || r.Failure.Kind != engine.FailTime || !strings.Contains(r.Failure.Message, "computed") {
		t.Errorf("%+v, %v", r.Failure, err)
	}
}

// TestATwoTimesLargeQuestion: a tool's name and its arguments have one bound together.
func TestATwoTimesLargeQuestion(t *testing.T) {
	t.Parallel()
	for code, reaches := range map[string]bool{
		`callTool('x'.repeat(100 << 10), 'y'.repeat(100 << 10))`: false,
		`callTool('x'.repeat(50 << 10), 'y'.repeat(50 << 10))`:   true,
	} {
		asked := false
		r, err := start(t).Call(t.Context(), engine.Call{Code: code, Tool: func(context.Context, string, string) engine.ToolReply {
			asked = true
			return engine.ToolReply{Result: `1`}
		}})
		if err != nil || asked != reaches || (r.Failure == nil) != reaches {
			t.Errorf("%s: asked %t, %+v, %v", code, asked, r.Failure, err)
		}
	}
}
