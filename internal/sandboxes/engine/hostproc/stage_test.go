package hostproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// runner is a keeper that runs the steps of a freeze as they are.
type runner struct {
	Keeper

	out strings.Builder
}

func (r *runner) Freeze(ctx context.Context, f keeper.Freeze) error {
	for _, argv := range f.Steps {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		r.out.Write(out)
		if err != nil {
			for _, argv := range f.Undo {
				out, _ := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
				r.out.Write(out)
			}
			return fault.Wrap(fault.ErrUnavailable, err, "the step failed")
		}
	}
	return nil
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

// TestAStageHasItsOwnLimit: what works on a sandbox's files runs in a group beside that
// sandbox's. Where it takes more than it may, it alone is ended, the error names the bound,
// and what lets the sandbox go on is run outside.
func TestAStageHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	name := fmt.Sprintf("cofferdam-stage-%d", os.Getpid())
	keep := &runner{}
	home := NewHome("e", t.TempDir(), name, os.Geteuid(), keep).LimitStages(cgroup.Limits{MemoryBytes: 32 << 20, Pids: 8, Weight: 100})
	if missing := home.Groups().Missing(); len(missing) > 0 {
		t.Fatalf("this host can't limit: %v", missing)
	}
	own, err := home.Group(engine.Spec{ID: "box", Share: "alice", Limits: engine.Limits{Pids: 5, CPU: 1, MemoryBytes: 64 << 20}}, 50)
	if err != nil {
		t.Fatal(err)
	}
	freeze := func(script string) (string, error) {
		keep.out.Reset()
		err := home.Freeze(t.Context(), keeper.Freeze{
			ID: "box", Keep: true, Steps: [][]string{shell(script)}, Undo: [][]string{shell("echo undo; cat /proc/self/cgroup")},
		})
		return keep.out.String(), err
	}
	said, err := freeze("head -c 1000000 /dev/zero | tail >/dev/null && cat /proc/self/cgroup") // the control
	group := filepath.Base(own.Path()) + ".stage"
	if err != nil || !strings.Contains(said, group) {
		t.Errorf("a step that takes little: %v; it was not in %s:\n%s", err, group, said)
	}
	said, err = freeze("head -c 300000000 /dev/zero | tail >/dev/null; exit $?")
	if !errors.Is(err, fault.ErrConflict) || !strings.Contains(fmt.Sprint(err), "processes.stage.memory allows (33554432 bytes)") {
		t.Errorf("300 MB in 32 MiB: %v", err)
	}
	if !strings.Contains(said, "undo") || strings.Contains(said, group) {
		t.Errorf("what takes it back was not run, or within the limit: %q", said)
	}
	if _, err = freeze("sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & sleep 0.1 & wait; exit 1"); !strings.Contains(fmt.Sprint(err), "processes.stage.tasks allows (8)") {
		t.Errorf("ten tasks of eight: %v", err)
	}
	if _, err = freeze("exit 3"); err == nil || strings.Contains(err.Error(), "processes.stage") {
		t.Errorf("a step that fails by itself: %v", err)
	}
	if met := own.Counters(); met != (cgroup.Met{}) {
		t.Errorf("the sandbox's own group has met %+v", met)
	}
	if _, err := home.Groups().OpenStage("box"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the stage's group is left: %v", err)
	}
	if _, err := home.beginStaging("box"); err != nil { // by a daemon that died then
		t.Fatal(err)
	}
	if err := home.RemoveGroups(t.Context(), "box"); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob("/sys/fs/cgroup/*/" + name)
	if more, _ := filepath.Glob("/sys/fs/cgroup/" + name); err != nil || len(slices.Concat(left, more)) > 0 {
		t.Errorf("left is %v %v, %v", left, more, err)
	}
}

// meanwhile is a keeper that does something else before it runs the steps of a freeze.
type meanwhile struct {
	runner

	first func()
}

func (m *meanwhile) Freeze(ctx context.Context, f keeper.Freeze) error {
	if first := m.first; first != nil {
		m.first = nil
		first()
	}
	return m.runner.Freeze(ctx, f)
}

// TestFreezesThatMeet: one that ends while another of the same instance waits for its turn leaves
// that the group which its steps join.
func TestFreezesThatMeet(t *testing.T) {
	t.Parallel()
	keep := &meanwhile{}
	home := NewHome("e", t.TempDir(), fmt.Sprintf("cofferdam-stages-%d", os.Getpid()), os.Geteuid(), keep)
	if missing := home.Groups().Missing(); len(missing) > 0 {
		t.Fatalf("this host can't limit: %v", missing)
	}
	freeze := func() error {
		return home.Freeze(t.Context(), keeper.Freeze{ID: "box", Keep: true, Steps: [][]string{shell("cat /proc/self/cgroup")}})
	}
	keep.first = func() {
		if err := freeze(); err != nil {
			t.Errorf("the one that comes between: %v", err)
		}
	}
	if err := freeze(); err != nil || strings.Count(keep.out.String(), "box.stage") < 2 {
		t.Errorf("the one that waited: %v\n%s", err, keep.out.String())
	}
	if _, err := home.Groups().OpenStage("box"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("the stage's group is left: %v", err)
	}
}
