package copies

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
)

// TestACopysMemoryGoesOnWithItsAgent alone; a copy of files goes on with any.
func TestACopysMemoryGoesOnWithItsAgent(t *testing.T) {
	agentDir := t.TempDir()
	if err := os.WriteFile(filepath.Join(agentDir, "agent"), []byte("today's"), 0o600); err != nil {
		t.Fatal(err)
	}
	blueprints := NewBlueprints(t.TempDir(), agentDir, nil, slog.New(slog.DiscardHandler))
	agent, err := blueprints.Agent()
	if err != nil {
		t.Fatal(err)
	}
	library := NewLibrary(Config{Blueprints: blueprints})
	caps := engine.Capabilities{Enforces: []engine.Control{engine.ContentsMemory.Control(), engine.ContentsFiles.Control()}}
	for _, c := range []struct {
		contents engine.Contents
		agent    string
		taken    bool
	}{
		{engine.ContentsMemory, agent, true},
		{engine.ContentsMemory, "another", false},
		{engine.ContentsMemory, "", false},
		{engine.ContentsFiles, "another", true},
	} {
		from := &Origin{Contents: c.contents}
		from.Made.Agent = c.agent
		if err := library.MayRestore(from, fake.New(t.TempDir(), nil), caps); (err == nil) != c.taken || err != nil && !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%v of the agent %q: %v", c.contents, c.agent, err)
		}
	}
}
