package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

func engines(ctx context.Context, in Inputs) []Check {
	var all []Check
	for _, e := range in.Engines {
		if in.DefaultEngine != "" && e.Name() != in.DefaultEngine {
			all = append(all, anotherEngine(ctx, e))
		} else {
			all = append(all, examineEngine(ctx, e)...)
		}
		all = append(all, doubts(ctx, e)...)
	}
	return append(all, isolation(ctx, in))
}

// doubts are what an engine that can run here knows against programs of this host.
func doubts(ctx context.Context, e engine.Engine) []Check {
	doubter, ok := e.(engine.FlawChecker)
	if !ok {
		return nil
	}
	if _, err := e.Capabilities(ctx); err != nil {
		return nil
	}
	var all []Check
	for _, doubt := range doubter.Doubts(ctx) {
		all = append(all, warnCheck("engine "+e.Name(), "keep its package up to date, or use another engine", "%s", doubt))
	}
	return all
}

// isolation tells what a policy gets that asks for the strongest wall, or for one of
// hardware. That there is none of hardware is no fault: it is asked for by who needs it.
func isolation(ctx context.Context, in Inputs) Check {
	const name = "isolation"
	best, wall := "", engine.WallNone
	var lacks []string
	for _, e := range in.Engines {
		caps, err := e.Capabilities(ctx)
		if err != nil {
			continue
		}
		if caps.Wall.Strength() > wall.Strength() {
			best, wall = e.Name(), caps.Wall
		}
		if caps.NoHardware != "" {
			lacks = append(lacks, e.Name()+": "+caps.NoHardware)
		}
	}
	switch {
	case best == "":
		return okCheck(name, "no engine here has a wall, so that auto and hardware are refused")
	case wall == engine.WallHardware:
		return okCheck(name, "auto and hardware take the engine %s", best)
	}
	because := cmp.Or(strings.Join(lacks, "; "), "no engine that can run here has such a wall")
	return okCheck(name, "auto takes the engine %s, whose wall is of the kind %s; hardware is refused (%s)", best, wall, because)
}

// anotherEngine tells of one that is there for who asks for it: that it can't run here, or
// lacks what the default one has, is no fault of the host.
func anotherEngine(ctx context.Context, e engine.Engine) Check {
	name := "engine " + e.Name()
	caps, err := e.Capabilities(ctx)
	if err != nil {
		return okCheck(name, "not available, and used only on request: %s", errorSentence(err))
	}
	var enforced, lacks []string
	for _, control := range controls() {
		if caps.Missing[control] != "" {
			lacks = append(lacks, string(control))
		} else if slices.Contains(caps.Enforces, control) {
			enforced = append(enforced, string(control))
		}
	}
	return okCheck(name, "on request; wall: %s%s; enforces %s; has no %s", wallOf(caps), wallProgram(caps), strings.Join(enforced, ", "), strings.Join(lacks, ", "))
}

func examineEngine(ctx context.Context, e engine.Engine) []Check {
	name := "engine " + e.Name()
	caps, err := e.Capabilities(ctx)
	if err != nil {
		return []Check{failCheck(name, "", "%s", errorSentence(err))}
	}
	var enforced []string
	for _, c := range caps.Enforces {
		enforced = append(enforced, string(c))
	}
	all := []Check{okCheck(name, "wall: %s%s; enforces %s", wallOf(caps), wallProgram(caps), strings.Join(enforced, ", "))}
	for _, control := range controls() {
		if reason, missing := caps.Missing[control]; missing {
			all = append(all, warnCheck(name, "", "no %s: %s", control, reason))
		}
	}
	if caps.Rootless {
		all = append(all, warnCheck(name, "run the daemon as root where several people share the machine",
			"without root: daemon, keeper and gateway are this user's, so a flaw in one reaches the others"))
	}
	return all
}

// wallProgram is what makes an engine's wall, where there could be several programs.
func wallProgram(caps engine.Capabilities) string {
	if caps.By == "" {
		return ""
	}
	return ", by " + caps.By
}

// wallOf is the word for an engine's wall.
func wallOf(caps engine.Capabilities) string { return cmp.Or(string(caps.Wall), "none") }

// controls are all controls, in the order of a report.
func controls() []engine.Control {
	return []engine.Control{
		engine.ControlNoNetwork, engine.ControlOwnKernel, engine.ControlReadOnlyRoot, engine.ControlNonRootUser, engine.ControlUserMapping,
		engine.ControlMemory, engine.ControlCPU, engine.ControlPids, engine.ControlNProc, engine.ControlDiskCap,
		engine.ControlFreeze, engine.ControlSnapshot, engine.ControlSnapshotFiles,
	}
}

// errorSentence is an error's text, with its cause, on one line.
func errorSentence(err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return "was not answered in time"
	}
	return err.Error()
}
