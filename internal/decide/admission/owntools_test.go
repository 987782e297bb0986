package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/tool"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// own is a set with one tool of a sandbox's own.
func own(t *testing.T, name string) *tool.Set {
	t.Helper()
	schema, err := tool.ParseSchema("")
	must(t, err)
	set, err := tool.NewSet([]tool.Tool{{Name: name, Schema: schema, Runner: runner(func(context.Context, tool.Call) ([]byte, error) {
		return []byte("mine"), nil
	})}})
	must(t, err)
	return set
}

// TestOwnTools: a tool that one sandbox was given is judged and recorded as any, and is nobody
// else's.
func TestOwnTools(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, func(r *Run) { r.Tools = own(t, "nowhere") })
	must(t, b.SandboxStarted(t.Context(), "sb1"))
	if a := b.call(t, "nowhere", `{}`); a.Outcome != door.ToolAnswered || string(a.Result) != `"mine"` {
		t.Errorf("%+v", a)
	}
	list, err := b.Tools(t.Context(), "sb1")
	if err != nil || len(list) != 5 {
		t.Errorf("%+v %v", list, err)
	}
	for _, r := range b.log.All() {
		if r.Kind == audit.KindSandbox && r.Detail["own_tools"] != "nowhere" {
			t.Errorf("that it was given tools is not on record: %+v", r)
		}
	}
	other := Run{Sandbox: "sb2", Run: "run2", Policy: parse(t, benchPolicy)}
	must(t, b.Register(other))
	a, err := b.CallTool(t.Context(), door.ToolAsk{Sandbox: "sb2", Tool: "nowhere"})
	if err != nil || a.Outcome != door.ToolUnknown {
		t.Errorf("another sandbox's tool: %+v %v", a, err)
	}
}

// TestOwnToolsNeedTheList: what the policy does not list can't be called, whoever gave it.
func TestOwnToolsNeedTheList(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, func(r *Run) { r.Tools = own(t, "secretly") })
	if a := b.call(t, "secretly", `{}`); a.Outcome != door.ToolRefused {
		t.Errorf("%+v", a)
	}
	list, err := b.Tools(t.Context(), "sb1")
	if err != nil || len(list) != 4 {
		t.Errorf("%+v %v", list, err)
	}
}

// TestOwnToolsReplaceNone: a tool of the configuration can't be replaced.
func TestOwnToolsReplaceNone(t *testing.T) {
	t.Parallel()
	b := tooled(t, CallLimits{}, nil, nil)
	err := b.Register(Run{Sandbox: "sb2", Run: "run2", Policy: parse(t, benchPolicy), Tools: own(t, "order")})
	if !errors.Is(err, fault.ErrInvalid) {
		t.Error(err)
	}
}
