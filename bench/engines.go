package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Targets and rounds of the part engines.
const (
	containerRatio   = 1.3 // of a bare container
	engineRounds     = 40
	engineExecRounds = 100
	engineMemories   = 5
	engineInstalls   = 9
	containersEngine = "runc"
	megabyte         = 1e6
)

// wall is an engine of this host, with what is measured of its sandboxes.
type wall struct {
	name                                          string
	bare                                          *bareContainer // nil: it has no floor here
	create, floor, exec, destroy, install, memory sample
}

// measureEngines measures the same of each engine that this host has, all taking turns:
// create to the end of the first command, a command more, destroy, what an idle sandbox
// uses, and an install of the same packages.
func measureEngines(ctx context.Context, b *bench) (err error) {
	walls, err := b.walls(ctx)
	if err != nil {
		return err
	}
	n := b.rounds(engineRounds)
	for i := range n + 1 {
		b.progress.round("create and destroy by each engine", i, n)
		for _, w := range walls {
			if err := w.life(ctx, b, i > 0); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	for _, w := range walls {
		if err := w.idle(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	if err := b.installsBehind(ctx, walls); err != nil {
		return err
	}
	for _, w := range walls {
		b.table.add(w.created())
		b.table.add(figure("  exec /bin/true", unitTime, w.exec))
		b.table.add(figure("  destroy", unitTime, w.destroy))
		b.table.add(figure("  memory of an idle sandbox", unitMemory, w.memory))
		b.table.add(figure("  pip install, ten packages, warm", unitTime, w.install))
	}
	return nil
}

// walls are the engines with which this host makes a sandbox.
func (b *bench) walls(ctx context.Context) (all []*wall, err error) {
	for _, name := range []string{"gvisor", containersEngine, "docker", "microvm"} {
		box, err := b.behind(ctx, name, closedPolicy)
		if err != nil {
			b.progress.line("no figures of the engine %s: %v", name, err)
			continue
		}
		w := &wall{name: name}
		if name == containersEngine {
			if w.bare, err = b.newBareContainer(box.ID); err != nil {
				return nil, fmt.Errorf("the model of the bare container: %w", err)
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

func (b *bench) behind(ctx context.Context, engine, policy string) (api.Sandbox, error) {
	return b.daemon.client.CreateSandbox(ctx, api.CreateSandbox{
		Engine: engine, Template: "debian", Policy: api.Policy{Document: []byte(policy)}, Linger: true,
	})
}

// life is one of a sandbox, and its floor.
func (w *wall) life(ctx context.Context, b *bench, counts bool) error {
	began := time.Now()
	box, err := b.behind(ctx, w.name, closedPolicy)
	if err != nil {
		return err
	}
	if err := b.command(ctx, box.ID, "/bin/true"); err != nil {
		return err
	}
	created := time.Since(began)
	var floor time.Duration
	if w.bare != nil { // its own place for mounts is there while a sandbox lives
		if floor, err = w.bare.once(ctx); err != nil {
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
		if w.bare != nil {
			w.floor.add(floor)
		}
	}
	return nil
}

// idle measures what sandboxes use that have run one command, and commands in one of them.
func (w *wall) idle(ctx context.Context, b *bench) error {
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

// installsBehind installs the same packages behind each engine in turn.
func (b *bench) installsBehind(ctx context.Context, walls []*wall) (err error) {
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

// created is the row of a create.
func (w *wall) created() row {
	r := figure(w.name+": create, first command finished", unitTime, w.create)
	if w.bare == nil {
		return r
	}
	return r.beside("runc run /bin/true, mounts made before", w.floor).
		target(fmt.Sprintf("<= %.1f x", containerRatio), w.create.median() <= containerRatio*w.floor.median())
}
