package sandbox

import (
	"context"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// wall is an engine of which only its controls are asked for.
type wall struct {
	engine.Engine

	name string
	has  []engine.Control
	gone error
}

func (w wall) Name() string { return w.name }

func (w wall) Capabilities(context.Context) (engine.Capabilities, error) {
	return engine.Capabilities{Enforces: w.has}, w.gone
}

// TestEnginesAreChosen: by name, or the strongest that there is; a policy's word holds
// against a request's, and what is not there is not replaced by something weaker.
func TestEnginesAreChosen(t *testing.T) {
	least := []engine.Control{engine.ControlNoNetwork, engine.ControlReadOnlyRoot}
	kernel := wall{name: "kernel", has: append([]engine.Control{engine.ControlOwnKernel}, least...)}
	thin := wall{name: "thin", has: append([]engine.Control{engine.ControlMemory, engine.ControlCPU}, least...)}
	bare := wall{name: "bare", has: least}
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
		"hardware":                   {all(kernel, thin), "hardware", "", "", "no engine of this version has it"},
		"hardware, by request":       {all(kernel, thin), "", "hardware", "", "no engine of this version has it"},
		"hardware, and a request":    {all(kernel, thin), "hardware", "thin", "", "no engine of this version has it"},
		"no such engine":             {all(kernel, thin), "", "moat", "", `there is no engine "moat"; this version has: kernel, thin`},
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
			got, _, err := c.here.choose(t.Context(), Request{Policy: p, Engine: c.request}, "kernel")
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
