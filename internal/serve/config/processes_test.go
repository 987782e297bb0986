package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProcessLimits: what is not set has its default, and what no program would start with is
// refused by the key's name.
func TestProcessLimits(t *testing.T) {
	t.Parallel()
	load := func(text string) (Config, error) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(path)
	}
	c, err := load("processes: { gateway: { memory: 300MiB }, stage: { tasks: 100 } }\n")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Processes
	if p.Gateway.Memory != 300<<20 || p.Gateway.Tasks != 2048 || p.Keeper.Memory < 1<<30 || p.Stage != (ProcessLimit{Memory: 512 << 20, Tasks: 100, CPUWeight: 100}) {
		t.Errorf("%+v", p)
	}
	for key, text := range map[string]string{
		"processes.gateway.memory":   "processes: { gateway: { memory: 1MiB } }\n",
		"processes.keeper.tasks":     "processes: { keeper: { tasks: 3 } }\n",
		"processes.stage.cpu_weight": "processes: { stage: { cpu_weight: 10001 } }\n",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
