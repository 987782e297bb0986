package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Targets and rounds of the part engines.
const (
	containerRatio   = 1.3 // of a bare container
	dockerRatio      = 1.1 // of what docker itself runs
	engineRounds     = 20
	engineExecRounds = 100
	engineMemories   = 5
	engineCopies     = 5
	engineInstalls   = 5
	containersEngine = "runc"
	dockersEngine    = "docker"
	machinesEngine   = "microvm"
	bootRatio        = 1.2  // of the bare boot of the same kernel
	restoreRatio     = 0.25 // of that boot, too
	megabyte         = 1e6
)

// wall is an engine of this host, with what is measured of its sandboxes.
type wall struct {
	name  string
	floor *floor // nil: it has none here
	// contents are the most that its snapshots hold: only those with memory make forks.
	contents string

	create, exec, destroy, install, memory, snapshot, restore, fork sample
}

// engineBench is the bench, with what this part starts.
type engineBench struct {
	*bench

	docker *docker // nil where there is none
}

// floor is the least that a create takes, taking turns with it.
type floor struct {
	name  string
	ratio float64 // the target; 0: none
	once  func(context.Context) (time.Duration, error)
	took  sample
}

// measureEngines measures the same of each engine that this host has, all taking turns:
// create to the end of the first command, a command more, destroy, what an idle sandbox
// uses, copies, and an install of the same packages. Calls are at the end.
func measureEngines(ctx context.Context, of *bench) (err error) {
	b := &engineBench{bench: of}
	stop, err := b.dockerHere(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	walls, err := b.walls(ctx)
	if err != nil {
		return err
	}
	n := b.rounds(engineRounds)
	for i := range n + 1 { // the first warms up
		b.progress.round("create and destroy by each engine", i, n)
		for _, w := range walls {
			if err := w.life(ctx, b, i > 0); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	for _, w := range walls {
		if err := errors.Join(w.idle(ctx, b), w.copies(ctx, b)); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	if err := b.installsBehind(ctx, walls); err != nil {
		return err
	}
	for _, w := range walls {
		w.report(&b.table)
	}
	return measureCall(ctx, of)
}

// dockerHere starts a Docker daemon at the socket that the configuration names, if there is
// one on this machine.
func (b *engineBench) dockerHere(ctx context.Context) (stop func() error, err error) {
	program, err := exec.LookPath("dockerd")
	if err != nil {
		return func() error { return nil }, nil //nolint:nilerr // then there are no figures of it
	}
	if b.docker, err = b.startDocker(ctx, program); err != nil {
		return nil, err
	}
	return b.docker.stop, nil
}

// walls are the engines with which this host makes a sandbox.
func (b *engineBench) walls(ctx context.Context) (all []*wall, err error) {
	for _, name := range []string{"gvisor", containersEngine, dockersEngine, machinesEngine} {
		box, err := b.behind(ctx, name, closedPolicy)
		if err != nil {
			b.progress.line("no figures of the engine %s: %v", name, err)
			continue
		}
		w := &wall{name: name, contents: "files"}
		if w.floor, err = b.floorOf(ctx, name, box.ID); err != nil {
			return nil, fmt.Errorf("the floor of %s: %w", name, err)
		}
		if snapshot, err := b.daemon.client.MakeSnapshot(ctx, box.ID, api.MakeSnapshot{Contents: "memory"}); err == nil {
			w.contents = "memory"
			if err := b.daemon.client.RemoveSnapshot(ctx, snapshot.ID); err != nil {
				return nil, err
			}
		}
		if err := b.daemon.client.DestroySandbox(ctx, box.ID); err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	if len(all) == 0 {
		return nil, errors.New("no engine makes a sandbox here")
	}
	return all, nil
}

// floorOf is what stands beside an engine's create; box is a sandbox of its.
func (b *engineBench) floorOf(ctx context.Context, engine, box string) (*floor, error) {
	switch engine {
	case "gvisor":
		bare, err := b.newBareRun(ctx)
		return &floor{name: "runsc run /bin/true", once: bare.once}, err
	case containersEngine:
		bare, err := newBareContainer(b.bench, box)
		return &floor{name: "runc run /bin/true, mounts made before", ratio: containerRatio, once: bare.once}, err
	case dockersEngine:
		return &floor{name: "docker run, one program, no mounts", ratio: dockerRatio, once: b.docker.run}, nil
	case machinesEngine:
		bare, err := newBareBoot(b.bench, box)
		if err != nil {
			return nil, err
		}
		return &floor{name: "boot of the same kernel to the agent's first word", ratio: bootRatio, once: bare.once}, nil
	}
	return nil, nil
}

func (b *engineBench) behind(ctx context.Context, engine, policy string) (api.Sandbox, error) {
	return b.daemon.client.CreateSandbox(ctx, api.CreateSandbox{
		Engine: engine, Template: "debian", Policy: api.Policy{Document: []byte(policy)}, Linger: true,
	})
}

// life is one of a sandbox, and its floor.
func (w *wall) life(ctx context.Context, b *engineBench, counts bool) error {
	began := time.Now()
	box, err := b.behind(ctx, w.name, closedPolicy)
	if err != nil {
		return err
	}
	if err := b.command(ctx, box.ID, "/bin/true"); err != nil {
		return err
	}
	created := time.Since(began)
	var least time.Duration
	if w.floor != nil { // runc's place for mounts is there while a sandbox lives
		if least, err = w.floor.once(ctx); err != nil {
			return err
		}
	}
	if _, err := b.daemon.client.RunSummary(ctx, box.Run); err != nil { // what the first command leaves to do is none of destroy's
		return err
	}
	began = time.Now()
	if err := b.daemon.client.DestroySandbox(ctx, box.ID); err != nil {
		return err
	}
	if counts {
		w.create.add(created)
		w.destroy.add(time.Since(began))
		if w.floor != nil {
			w.floor.took.add(least)
		}
	}
	return nil
}

// idle measures what sandboxes use that have run one command, and commands in one of them.
func (w *wall) idle(ctx context.Context, b *engineBench) error {
	n := b.rounds(engineExecRounds)
	for i := range engineMemories {
		box, err := b.behind(ctx, w.name, closedPolicy)
		if err != nil {
			return err
		}
		if err := b.command(ctx, box.ID, "/bin/true"); err != nil {
			return err
		}
		use, err := b.daemon.client.Usage(ctx, box.ID)
		if err != nil {
			return err
		}
		w.memory = append(w.memory, float64(use.MemoryBytes)/megabyte)
		for j := range n {
			if i > 0 {
				break
			}
			b.progress.round("exec by "+w.name, j, n)
			began := time.Now()
			if err := b.command(ctx, box.ID, "/bin/true"); err != nil {
				return err
			}
			w.exec.add(time.Since(began))
		}
		if err := b.daemon.client.DestroySandbox(ctx, box.ID); err != nil {
			return err
		}
	}
	return nil
}

// copies snapshots a sandbox, makes others of that, and forks it if the engine can.
func (w *wall) copies(ctx context.Context, b *engineBench) error {
	box, err := b.behind(ctx, w.name, closedPolicy)
	if err != nil {
		return err
	}
	if err := b.command(ctx, box.ID, "/bin/sh", "-c", "head -c 4000000 /dev/urandom >~/four-megabytes"); err != nil {
		return err
	}
	n := b.rounds(engineCopies)
	for i := range n + 1 {
		b.progress.round("copies by "+w.name, i, n)
		began := time.Now()
		snapshot, err := b.daemon.client.MakeSnapshot(ctx, box.ID, api.MakeSnapshot{Contents: w.contents})
		if err != nil {
			return err
		}
		snapshotted := time.Since(began)
		restored, err := b.answered(ctx, func() (*api.Sandbox, error) {
			made, err := b.daemon.client.CreateSandbox(ctx, api.CreateSandbox{Snapshot: snapshot.ID, Linger: true})
			return &made, err
		})
		if err := errors.Join(err, b.daemon.client.RemoveSnapshot(ctx, snapshot.ID)); err != nil {
			return err
		}
		var forked time.Duration
		if w.contents == "memory" {
			if forked, err = b.answered(ctx, func() (*api.Sandbox, error) { return b.forkOf(ctx, box.ID) }); err != nil {
				return err
			}
		}
		if i == 0 {
			continue
		}
		w.snapshot.add(snapshotted)
		w.restore.add(restored)
		if w.contents == "memory" {
			w.fork.add(forked)
		}
	}
	return b.daemon.client.DestroySandbox(ctx, box.ID)
}

func (b *engineBench) forkOf(ctx context.Context, id string) (*api.Sandbox, error) {
	forks, err := b.daemon.client.Fork(ctx, id, api.ForkSandbox{})
	if err == nil && (len(forks) != 1 || forks[0].Sandbox == nil) {
		err = fmt.Errorf("a fork of one came to %+v", forks)
	}
	if err != nil {
		return nil, err
	}
	return forks[0].Sandbox, nil
}

// answered tells how long a new sandbox takes until its first command has ended, and ends it.
func (b *engineBench) answered(ctx context.Context, made func() (*api.Sandbox, error)) (time.Duration, error) {
	began := time.Now()
	box, err := made()
	if err != nil {
		return 0, err
	}
	if err := b.command(ctx, box.ID, "/bin/true"); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, b.daemon.client.DestroySandbox(ctx, box.ID)
}

// installsBehind installs the same packages behind each engine in turn.
func (b *engineBench) installsBehind(ctx context.Context, walls []*wall) (err error) {
	drivers := make([]*driver, len(walls))
	for i, w := range walls {
		box, err := b.behind(ctx, w.name, tenPolicy(b.wheels))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(context.WithoutCancel(ctx), box.ID)) }()
		if drivers[i], err = b.startDriver(ctx, box.ID); err != nil {
			return err
		}
		defer drivers[i].close()
	}
	n := b.rounds(engineInstalls)
	for i := range n + 1 {
		b.progress.round("pip install behind each engine", i, n)
		for j, w := range walls {
			took, err := b.install(drivers[j], "https://"+indexHost+"/simple/")
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if i > 0 {
				w.install.add(took)
			}
		}
	}
	return nil
}

// report adds the rows of an engine.
func (w *wall) report(t *table) {
	t.add(w.created())
	t.add(figure("  exec /bin/true", unitTime, w.exec))
	t.add(figure("  destroy", unitTime, w.destroy))
	t.add(figure("  memory of an idle sandbox", unitMemory, w.memory))
	t.add(figure("  snapshot, "+w.contents, unitTime, w.snapshot))
	t.add(w.restored())
	if w.contents == "memory" {
		t.add(figure("  fork, to the copy's first answer", unitTime, w.fork))
	}
	t.add(figure("  pip install, ten packages, warm", unitTime, w.install))
}

// created is the row of a create.
func (w *wall) created() row {
	r := figure(w.name+": create, first command finished", unitTime, w.create)
	if w.floor == nil {
		return r
	}
	r = r.beside(w.floor.name, w.floor.took)
	if w.floor.ratio == 0 {
		return r
	}
	return r.target(fmt.Sprintf("<= %.1f x", w.floor.ratio), w.create.median() <= w.floor.ratio*w.floor.took.median())
}

// restored is the row of a copy, for which machines have a target.
func (w *wall) restored() row {
	r := figure("  a sandbox of it, to its first answer", unitTime, w.restore)
	if w.name != machinesEngine || w.floor == nil || w.contents != "memory" {
		return r
	}
	return r.beside("the boot", w.floor.took).target(fmt.Sprintf("<= %.2f x", restoreRatio), w.restore.median() <= restoreRatio*w.floor.took.median())
}

// dockerHost is the socket of the Docker daemon that dockerHere starts, in a bench's folder.
func dockerHost(dir string) string { return "unix://" + filepath.Join(dir, "docker", "docker.sock") }
