package jscall

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// maxTask bounds what the record keeps of a task, in bytes.
const maxTask = 8 << 10

// planCall finds out what a call is to be, or says why it can't be. Nothing is made yet.
func (d *Desk) planCall(req Request) (engine.Caller, engine.Call, error) {
	if err := checkRequest(req); err != nil {
		return nil, engine.Call{}, err
	}
	caller, err := d.choose(req)
	if err != nil {
		return nil, engine.Call{}, err
	}
	if mode, _ := req.Policy.OnHold(); mode == policy.HoldFreeze {
		return nil, engine.Call{}, fault.New(fault.ErrUnavailable,
			"the policy says on_hold: freeze, and a call can't be frozen; on_hold: wait 20s and fail are possible, or run it in a sandbox: cofferdam run")
	}
	call := engine.Call{Language: cmp.Or(req.Language, caller.Languages()[0]), Code: req.Code}
	switch most := caller.Bounds().Code; {
	case !slices.Contains(caller.Languages(), call.Language):
		return nil, call, fault.Invalid("there is no language %.40q for calls; there is: %s", call.Language, strings.Join(caller.Languages(), ", "))
	case len(req.Code) > most:
		return nil, call, fault.Invalid("the code has %d bytes; it may have %d", len(req.Code), most)
	case !utf8.ValidString(req.Code):
		return nil, call, fault.Invalid("the code is not UTF-8")
	}
	call.Limits, err = callLimits(req, caller.Bounds())
	return caller, call, err
}

func checkRequest(req Request) error {
	switch {
	case req.Policy == nil:
		return fault.Invalid("a call needs a policy")
	case req.Run != "" && !validRun.MatchString(req.Run):
		return fault.Invalid("the run id %.140q is not valid: up to 128 letters, digits, dots, dashes and underscores, starting with a letter or digit", req.Run)
	case len(req.Task) > maxTask:
		return fault.Invalid("the task is %d bytes long; at most %d", len(req.Task), maxTask)
	case req.Timeout < 0 || req.MemoryBytes < 0:
		return fault.Invalid("a call's time and memory can't be negative")
	}
	return nil
}

// choose finds the engine. A policy that asks for the wall of a sandbox is not met by a
// call, and neither is one that says auto, which is the strongest wall that there is. One
// that says nothing leaves it to the host's own user; for a token the operator has to have
// said it, since the wall of a call stands in the daemon's own process.
func (d *Desk) choose(req Request) (engine.Caller, error) {
	want := req.Policy.Isolation()
	if want == "" && req.Token != "" {
		return nil, fault.New(fault.ErrForbidden, "the policy does not say isolation: %s, and a token's code is run without a sandbox only where it does", d.config.Default)
	}
	caller, known := d.config.Callers[cmp.Or(want, d.config.Default)]
	if !known {
		return nil, fault.New(fault.ErrForbidden,
			"the policy asks for isolation %s, and a call has no sandbox: it needs a policy that says isolation: %s, or nothing of it; in a sandbox, cofferdam run runs the code", want, d.config.Default)
	}
	return caller, nil
}

// callLimits are the policy's, and the client's below those.
func callLimits(req Request, bounds engine.CallBounds) (engine.CallLimits, error) {
	has := req.Policy.Resources()
	computing, err := boundedLimit("timeout_seconds", req.Timeout, has.Timeout, usualTime, bounds.Most.Time)
	if err != nil {
		return engine.CallLimits{}, err
	}
	memory, err := boundedLimit("max_memory_mb", req.MemoryBytes, has.MemoryBytes, usualMemory, bounds.Most.MemoryBytes)
	if err != nil {
		return engine.CallLimits{}, err
	}
	if memory < bounds.LeastMemory {
		return engine.CallLimits{}, fault.Invalid("a call needs at least %d MiB of memory, and the policy or the request gives it %d bytes", bounds.LeastMemory>>20, memory)
	}
	return engine.CallLimits{Time: computing, Life: min(computing+mayWait, bounds.Most.Life), MemoryBytes: memory}, nil
}

// boundedLimit returns what is asked for, as far as the policy and the engine have it; else what is
// usual, or less where the policy has less.
func boundedLimit[N int64 | time.Duration](key string, asked, has, usual, most N) (N, error) {
	if has > 0 {
		most = min(most, has)
	}
	if asked > most {
		return 0, fault.New(fault.ErrForbidden, "more is asked for than %s and the engine of calls allow: %v, and they allow %v", key, asked, most)
	}
	return cmp.Or(asked, min(usual, most)), nil
}
