package sandbox

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// The words by which a policy and a request can ask for more than an engine by its name.
const (
	isolationAuto     = "auto"     // the strongest that this host has
	isolationHardware = "hardware" // one with a wall of hardware, and nothing less
)

// engines are those of this host, by name.
type engines map[string]engine.Engine

// choose finds the engine and refuses one that can't enforce what every
// sandbox needs; limits it can't enforce are told (Info.Missing). calls are the names of
// engines that make no sandboxes.
func (all engines) choose(ctx context.Context, req Request, preset string, calls []string) (engine.Engine, engine.Capabilities, error) {
	name, err := all.askedEngine(ctx, cmp.Or(req.Engine, req.Policy.Isolation(), preset), req.Policy.Isolation(), preset)
	if err != nil {
		return nil, engine.Capabilities{}, err
	}
	eng, ok := all[name]
	if !ok && slices.Contains(calls, name) {
		return nil, engine.Capabilities{}, fault.Invalid("the engine %s runs calls and makes no sandboxes: cofferdam call runs code under it", name)
	}
	if !ok {
		return nil, engine.Capabilities{}, fault.Invalid("there is no engine %q; this version has: %s", name, strings.Join(all.listNames(), ", "))
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

func (all engines) listNames() []string { return slices.Sorted(maps.Keys(all)) }

// askedEngine is the engine of a name that a request, its policy or the host's preset says. A
// policy's word holds against it: another engine is refused, and so is one whose wall is
// not of hardware, where the policy wants that.
func (all engines) askedEngine(ctx context.Context, name, policys, preset string) (string, error) {
	switch policys {
	case "", isolationAuto:
	case isolationHardware:
		if name == isolationAuto {
			name = isolationHardware
		}
		if _, err := all.hardware(ctx, name); err != nil {
			return "", err
		}
	default:
		if name == isolationAuto || name == isolationHardware && all.wallOf(ctx, policys) == engine.WallHardware {
			name = policys
		}
		if name != policys {
			return "", fault.New(fault.ErrForbidden, "the policy asks for isolation %s, so it can't be %s", policys, name)
		}
	}
	switch name {
	case isolationAuto:
		return all.strongest(ctx, preset), nil
	case isolationHardware:
		return all.hardware(ctx, name)
	}
	return name, nil
}

// strongest is the engine with the best wall of those that can run here; of the same wall,
// the one that enforces most. Where none can run it is otherwise, which says why.
func (all engines) strongest(ctx context.Context, otherwise string) string {
	best, wall, most := otherwise, engine.WallNone, 0
	for _, name := range all.listNames() {
		caps, err := all[name].Capabilities(ctx)
		if err != nil {
			continue
		}
		better := caps.Wall.Strength() - wall.Strength()
		if better > 0 || better == 0 && len(caps.Enforces) > most {
			best, wall, most = name, caps.Wall, len(caps.Enforces)
		}
	}
	return best
}

// wallOf is an engine's here, WallNone of one that can't run.
func (all engines) wallOf(ctx context.Context, name string) engine.Wall {
	eng, ok := all[name]
	if !ok {
		return engine.WallNone
	}
	caps, err := eng.Capabilities(ctx)
	if err != nil {
		return engine.WallNone
	}
	return caps.Wall
}

// hardware is the engine of a name if its wall is of hardware, or by the name
// isolationHardware the strongest. Nothing weaker stands in for it: without one, it says
// why each engine has none.
func (all engines) hardware(ctx context.Context, name string) (string, error) {
	if name == isolationHardware {
		name = all.strongest(ctx, "")
	}
	if all.wallOf(ctx, name) == engine.WallHardware {
		return name, nil
	}
	var reasons []string
	for _, name := range all.listNames() {
		reasons = append(reasons, name+": "+all.describeWithout(ctx, name))
	}
	return "", fault.New(fault.ErrUnavailable, "the isolation hardware is asked for, and no engine has it here (%s)", strings.Join(reasons, "; "))
}

// describeWithout says what an engine has instead of a wall of hardware.
func (all engines) describeWithout(ctx context.Context, name string) string {
	caps, err := all[name].Capabilities(ctx)
	switch {
	case err != nil:
		return err.Error()
	case caps.Wall == engine.WallHardware:
		return "has it, and is not the one that was asked for"
	case caps.NoHardware != "":
		return caps.NoHardware
	}
	return "its wall is another: " + cmp.Or(string(caps.Wall), "none")
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
