package sandbox

import (
	"context"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// wall is an engine of which only its controls are asked for.
type wall struct {
	engine.Engine

	name string
	has  []engine.Control
	wall engine.Wall
	why  string
	gone error
}

func (w wall) Name() string { return w.name }

func (w wall) Capabilities(context.Context) (engine.Capabilities, error) {
	return engine.Capabilities{Enforces: w.has, Wall: w.wall, NoHardware: w.why}, w.gone
}

// TestEnginesAreChosen: by name, or the strongest that there is; a policy's word holds
// against a request's, and what is not there is not replaced by something weaker.
func TestEnginesAreChosen(t *testing.T) {
	least := []engine.Control{engine.ControlNoNetwork, engine.ControlReadOnlyRoot}
	kernel := wall{name: "kernel", wall: engine.WallUserKernel, has: append([]engine.Control{engine.ControlOwnKernel}, least...)}
	thin := wall{name: "thin", wall: engine.WallContainer, has: append([]engine.Control{engine.ControlMemory, engine.ControlCPU}, least...)}
	bare := wall{name: "bare", wall: engine.WallContainer, has: least}
	slow := wall{name: "slow", wall: engine.WallEmulated, has: append([]engine.Control{engine.ControlSnapshot}, kernel.has...), why: "it is emulated"}
	steel := wall{name: "steel", wall: engine.WallHardware, has: least}
	open := wall{name: "open"}
	gone := kernel
	gone.gone = fault.New(fault.ErrUnavailable, "it is not installed")
	all := func(walls ...wall) engines {
		e := engines{}
		for _, w := range walls {
			e[w.name] = w
		}
		return e
	}
	for name, c := range map[string]struct {
		here            engines
		policy, request string
		want, says      string
	}{
		"nobody asks":                {all(kernel, thin), "", "", "kernel", ""},
		"a request":                  {all(kernel, thin), "", "thin", "thin", ""},
		"a policy":                   {all(kernel, thin), "thin", "", "thin", ""},
		"a policy against a request": {all(kernel, thin), "kernel", "thin", "", "the policy asks for isolation kernel"},
		"auto":                       {all(bare, kernel, thin), "auto", "", "kernel", ""},
		"auto, none with a kernel":   {all(bare, gone, thin), "", "auto", "thin", ""},
		"auto, and a request":        {all(kernel, thin), "auto", "thin", "thin", ""},
		"auto, with nothing here":    {all(gone), "auto", "", "", "it is not installed"},
		"a policy's engine is gone":  {all(gone, thin), "kernel", "", "", "it is not installed"},
		"auto, with hardware":        {all(kernel, slow, steel, thin), "auto", "", "steel", ""},
		"auto, with a slow machine":  {all(kernel, slow, thin), "auto", "", "kernel", ""},
		"auto against a policy":      {all(kernel, steel), "kernel", "auto", "kernel", ""},
		"hardware":                   {all(kernel, steel), "hardware", "", "steel", ""},
		"hardware, by request":       {all(kernel, steel), "", "hardware", "steel", ""},
		"hardware twice":             {all(kernel, steel), "hardware", "hardware", "steel", ""},
		"hardware that is enough":    {all(kernel, steel), "hardware", "auto", "steel", ""},
		"hardware by its name":       {all(kernel, steel), "hardware", "steel", "steel", ""},
		"a policy that is hardware":  {all(kernel, steel), "steel", "hardware", "steel", ""},
		"a policy that is not":       {all(kernel, steel), "kernel", "hardware", "", "the policy asks for isolation kernel, so it can't be hardware"},
		"no hardware":                {all(kernel, slow), "hardware", "", "", "no engine has it here (kernel: its wall is another: user-space-kernel; slow: it is emulated)"},
		"no hardware, by request":    {all(kernel, gone), "", "hardware", "", "no engine has it here"},
		"hardware, and a request":    {all(steel, thin), "hardware", "thin", "", "thin: its wall is another: container"},
		"hardware is gone":           {all(gone), "hardware", "", "", "kernel: it is not installed"},
		"no such engine":             {all(kernel, thin), "", "moat", "", `there is no engine "moat"; this version has: kernel, thin`},
		"an engine of calls":         {all(kernel), "spark", "", "", "the engine spark runs calls and makes no sandboxes: cofferdam call runs code under it"},
		"one, by request":            {all(kernel), "", "spark", "", "cofferdam call"},
		"without a wall":             {all(open, kernel), "", "open", "", "can't enforce no-network"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "packages: { default: deny }\n"
			if c.policy != "" {
				text += "isolation: " + c.policy + "\n"
			}
			p, err := policy.Parse("p", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := c.here.choose(t.Context(), Request{Policy: p, Engine: c.request}, "kernel", []string{"spark"})
			switch {
			case c.says != "":
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v, want it to say %q", err, c.says)
				}
			case err != nil || got.Name() != c.want:
				t.Errorf("chosen is %v (%v), want %s", got, err, c.want)
			}
		})
	}
}
