package sandbox

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// What a policy and a request can ask for beside an engine by its name.
const (
	isolationAuto     = "auto"     // the strongest that this host has
	isolationHardware = "hardware" // one with a wall of hardware, and nothing less
)

// engines are those of this host, by name.
type engines map[string]engine.Engine

// choose finds the engine and refuses one that can't enforce what every
// sandbox needs; limits it can't enforce are told (Info.Missing).
func (all engines) choose(ctx context.Context, req Request, preset string) (engine.Engine, engine.Capabilities, error) {
	name := req.Engine
	if name == "" {
		name = req.Policy.Isolation()
	}
	if name == "" {
		name = preset
	}
	want := req.Policy.Isolation()
	if want == isolationHardware || name == isolationHardware {
		return nil, engine.Capabilities{}, fault.New(fault.ErrUnavailable,
			"the isolation hardware is asked for, and no engine of this version has it; it has: %s", strings.Join(all.names(), ", "))
	}
	if want != "" && want != isolationAuto && want != name {
		return nil, engine.Capabilities{}, fault.New(fault.ErrForbidden, "the policy asks for isolation %s, so the engine can't be %s", want, name)
	}
	if name == isolationAuto {
		name = all.strongest(ctx, preset)
	}
	eng, ok := all[name]
	if !ok {
		return nil, engine.Capabilities{}, fault.Invalid("there is no engine %q; this version has: %s", name, strings.Join(all.names(), ", "))
	}
	caps, err := eng.Capabilities(ctx)
	if err != nil {
		return nil, engine.Capabilities{}, err
	}
	for _, must := range []engine.Control{engine.ControlNoNetwork, engine.ControlReadOnlyRoot} {
		if !slices.Contains(caps.Enforces, must) {
			return nil, engine.Capabilities{}, fault.New(fault.ErrUnavailable, "the engine %s can't enforce %s here: %s", name, must, caps.Missing[must])
		}
	}
	if mode, _ := req.Policy.OnHold(); mode == policy.HoldFreeze && !slices.Contains(caps.Enforces, engine.ControlFreeze) {
		return nil, engine.Capabilities{}, fault.New(fault.ErrUnavailable,
			"the policy says on_hold: freeze, and the engine %s can't freeze sandboxes here%s; on_hold: wait 20s and fail are possible", name, caps.Because(engine.ControlFreeze))
	}
	return eng, caps, nil
}

func (all engines) names() []string { return slices.Sorted(maps.Keys(all)) }

// strongest is the engine with the best wall of those that can run here: one with a kernel
// of its own before one without, then the one that enforces most. Where none can run it
// is otherwise, which says why.
func (all engines) strongest(ctx context.Context, otherwise string) string {
	best, most := otherwise, 0
	for _, name := range all.names() {
		caps, err := all[name].Capabilities(ctx)
		if err != nil {
			continue
		}
		strength := len(caps.Enforces)
		if slices.Contains(caps.Enforces, engine.ControlOwnKernel) {
			strength += 1000
		}
		if strength > most {
			best, most = name, strength
		}
	}
	return best
}

// canPause refuses what an engine can't do here.
func (all engines) canPause(ctx context.Context, name string) error {
	eng, ok := all[name]
	if !ok {
		return fault.New(fault.ErrUnavailable, "there is no engine %q any more", name)
	}
	caps, err := eng.Capabilities(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(caps.Enforces, engine.ControlFreeze) {
		return fault.New(fault.ErrUnavailable, "the engine %s can't pause sandboxes here%s", name, caps.Because(engine.ControlFreeze))
	}
	return nil
}
