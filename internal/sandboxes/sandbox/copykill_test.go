package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/faultpoint"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// roleCopier is that of a process which is a daemon and copies a sandbox, until it
// meets the fault point that it is to die at.
const roleCopier = "sandbox-copier"

func playCopier(text string) {
	err := func() error {
		var w world
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			return err
		}
		d, err := w.startCopier(context.Background())
		if err != nil {
			return err
		}
		return d.copies(context.Background(), func(what, id string) { fmt.Println(what, id) })
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1) // the point was not met
}

// startCopier makes a daemon whose engine can copy.
func (w *world) startCopier(ctx context.Context) (*daemon, error) {
	log, err := audit.Open(w.path("audit"), audit.Options{})
	if err != nil {
		return nil, err
	}
	file, err := store.OpenSandboxes(ctx, w.path("sandboxes.db"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(w.path("snapshots"), 0o700); err != nil {
		return nil, err
	}
	quiet := slog.New(slog.DiscardHandler)
	kept, err := snapshots.Open(snapshots.Config{Dir: w.path("snapshots"), Room: snapshots.Room{Bytes: 1 << 30, Count: 100}, Log: quiet})
	if err != nil {
		return nil, err
	}
	d := &daemon{world: w, log: log, file: file, engine: &plainEngine{Engine: fake.New(w.path("state"), w.keeper()), world: w}}
	eng := &camera{
		Engine: d.engine.Engine, dir: w.Dir, seen: map[string]engine.Spec{},
		init: func(root string) []string { return append(slices.Clone(w.Init), root) },
	}
	d.Manager = sandbox.New(sandbox.Config{
		Engines: map[string]engine.Engine{eng.Name(): eng}, DefaultEngine: eng.Name(), Keeper: w.keeper(), Templates: plainTemplate{},
		Door:      admission.New(admission.Config{Log: log}),
		Trust:     func(context.Context) ([]byte, []string, error) { return []byte(certificate), nil, nil },
		ClientEnv: func() map[string]string { return nil },
		AgentDir:  w.path("agent"), EmptyFile: "/dev/null", PolicyDir: w.path("policies"), BaselineDir: w.path("baselines"), DefaultTemplate: "plain",
		Queue: answered{}, Shelf: suspend.NewShelf(w.path("frozen"), suspend.Room{Bytes: 1 << 40, Count: 500}), FreezeAfter: w.FreezeAfter,
		Log: quiet, Journal: file, Reserve: 1, Snapshots: kept,
	})
	return d, d.Recover(ctx)
}

// copies makes a sandbox, a snapshot of it, one from that, and forks.
func (d *daemon) copies(ctx context.Context, say func(what, id string)) error {
	p, err := policy.Parse("test", []byte(document))
	if err != nil {
		return err
	}
	s, err := d.Create(ctx, sandbox.Request{Policy: p, PolicyText: []byte(document), Linger: true})
	if err != nil {
		return err
	}
	say("created", s.Info().ID)
	snap, err := d.Snapshot(ctx, s.Info().ID, "base", "")
	if err != nil {
		return err
	}
	say("snapshot", snap.ID)
	again, err := d.Create(ctx, sandbox.Request{Snapshot: "base", Linger: true})
	if err != nil {
		return err
	}
	say("restored", again.Info().ID)
	forks, err := d.Fork(ctx, s.Info().ID, 1, sandbox.Lifetime{})
	if err != nil {
		return err
	}
	if forks[0].Err != nil {
		return forks[0].Err
	}
	say("forked", forks[0].Sandbox.Info().ID)
	return errors.New("the point was not met")
}

// TestKilledWhileCopying: at every point there is a whole snapshot or none, its
// source runs on, and nothing half made is left.
func TestKilledWhileCopying(t *testing.T) {
	for _, point := range faultpoint.All() {
		if !notHere(point) {
			continue
		}
		t.Run(string(point), func(t *testing.T) {
			w := newWorld(t)
			answers := w.crashAs(t, roleCopier, point)
			d, err := w.startCopier(t.Context())
			must(t, err)
			defer d.stop(t)
			var want []string
			for _, what := range []string{"created", "restored", "forked"} {
				if id := answers[what]; id != "" {
					want = append(want, id)
				}
			}
			var live []string
			for _, s := range d.List() {
				live = append(live, s.Info().ID)
				wantState(t, s, sandbox.Running)
			}
			for _, id := range want {
				if !slices.Contains(live, id) {
					t.Errorf("%s was told of and does not live: %v", id, live)
				}
			}
			if most := len(want); point == faultpoint.ForkRestored && len(live) > most+1 || point != faultpoint.ForkRestored && len(live) > most {
				t.Errorf("%v live, and %v were told of", live, want)
			}
			d.wantOnly(t, live...)
			d.wantWholeSnapshots(t, point, answers["snapshot"])
			for _, s := range d.List() {
				must(t, d.Destroy(t.Context(), s.Info().ID))
			}
			d.nothingLeft(t)
			d.wantOneEnd(t)
			if left, err := os.ReadDir(w.path("baselines")); err != nil || slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "made-") }) {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// wantWholeSnapshots: the one that a client was told of, or at most one that was
// published before it was told; what is there can be used, and nothing else is.
func (d *daemon) wantWholeSnapshots(t *testing.T, point faultpoint.Point, answers string) {
	t.Helper()
	list, err := d.Snapshots(t.Context())
	must(t, err)
	entries, err := os.ReadDir(d.world.path("snapshots"))
	must(t, err)
	published := answers != "" || point == faultpoint.SnapshotPublished
	if len(entries) != len(list) || published != (len(list) == 1) || answers != "" && list[0].ID != answers {
		t.Errorf("there are %v, in %v; the client was told of %q", list, entries, answers)
	}
	if len(list) == 0 {
		return
	}
	s, err := d.Create(t.Context(), sandbox.Request{Snapshot: "base"})
	must(t, err)
	wantState(t, s, sandbox.Running)
	must(t, d.RemoveSnapshot(t.Context(), "", "base"))
}
