package all_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestAToyIsChosen: a policy can name the engine, and it is refused what it does not
// declare to enforce.
func TestAToyIsChosen(t *testing.T) {
	p, err := policy.Parse("p.yaml", []byte("version: \"1\"\nisolation: toy\n"))
	if err != nil {
		t.Fatal(err)
	}
	e, known := all.Engines(all.Config{StateDir: t.TempDir()}, nil)[p.Isolation()]
	if !known {
		t.Fatalf("no engine is called %q", p.Isolation())
	}
	can, err := e.Capabilities(t.Context())
	if err != nil || can.Missing[engine.ControlNoNetwork] == "" {
		t.Errorf("it declares %+v, %v", can, err)
	}
}
