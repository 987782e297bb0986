package runc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/runc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// TestASnapshotCostsItsOwnSandbox: the stage that packs a container's files is within limits
// of its own. One that they end fails the snapshot, which says so, leaves no image, and lets the
// container go on.
func TestASnapshotCostsItsOwnSandbox(t *testing.T) {
	s := newSite(t)
	wide := s.box(t, "wide")
	wide.must("", `mkdir /home/agent/d; cd /home/agent/d; i=0; while [ $i -lt 400 ]; do : >$i; i=$((i+1)); done`)
	limited := func(memory int64) engine.Instance {
		cfg := s.config(string(engine.RootImage))
		cfg.Stages = cgroup.Limits{MemoryBytes: memory, Pids: 256, Weight: 100}
		inst, err := runc.New(cfg, keeper.Dial(wide.Socket)).Open(t.Context(), engine.Handle{Engine: "runc", ID: wide.id, State: []byte("{}")})
		if err != nil {
			t.Fatal(err)
		}
		return inst
	}
	snapshot := func(inst engine.Instance, dir string) error {
		return inst.(engine.Snapshotter).Snapshot(t.Context(), dir, engine.ContentsFiles) //nolint:forcetypeassert // the engine's are
	}
	dir := filepath.Join(t.TempDir(), "image")
	// On one processor a program in Go packs these in 2 MiB.
	err := snapshot(limited(512<<10), dir)
	if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "processes.stage.memory allows (524288 bytes)") {
		t.Errorf("within 512 KiB: %v", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("an image is left: %v", err)
	}
	if got := wide.must("", "ls /home/agent/d | wc -l"); got != "400" {
		t.Errorf("the container has %q", got)
	}
	if err := snapshot(limited(256<<20), dir); err != nil {
		t.Errorf("the control, within 256 MiB: %v", err)
	}
	for _, trace := range wide.Traces(wide.id) {
		if strings.HasSuffix(trace, ".stage") {
			t.Errorf("a group is left: %s", trace)
		}
	}
}
