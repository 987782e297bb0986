package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Targets of the part create.
const (
	createRatio   = 1.15
	daemonsOwn    = 5.0 // ms: the resident daemon's few
	destroyTarget = 10.0
	createRounds  = 100
)

// closedPolicy lets nothing in.
const closedPolicy = "name: bench\npackages:\n  default: deny\n"

// measureCreate takes turns with bare runsc: from nothing to the end of the
// first command. Destroy is measured on the way.
func measureCreate(ctx context.Context, b *bench) error {
	bare, err := b.newBareRun(ctx)
	if err != nil {
		return err
	}
	n := b.rounds(createRounds)
	var ours, theirs, boot, settle, destroy sample
	for i := range n + 1 { // the first warms up
		b.progress.round("create and destroy, against bare runsc", i, n)
		c, err := b.createOnce(ctx)
		if err != nil {
			return err
		}
		run, err := bare.once(ctx)
		if err != nil {
			return err
		}
		if i == 0 {
			continue
		}
		ours.add(c.first)
		boot.add(c.create)
		settle.add(c.settle)
		destroy.add(c.destroy)
		theirs.add(run)
	}
	b.table.add(figure("create, first command finished", unitTime, ours).beside("runsc run /bin/true", theirs).
		target(fmt.Sprintf("<= %.2f x + %.0f", createRatio, daemonsOwn), ours.median() <= createRatio*theirs.median()+daemonsOwn))
	b.table.add(figure("  of that, create", unitTime, boot))
	b.table.add(figure("  after its end, inventory and record", unitTime, settle))
	b.table.add(figure("destroy", unitTime, destroy).target(fmt.Sprintf("< %.0f", destroyTarget), destroy.median() < destroyTarget))
	return nil
}

// lifetime is how long the parts of a sandbox's life took.
type lifetime struct{ create, first, settle, destroy time.Duration }

func (b *bench) createOnce(ctx context.Context) (lifetime, error) {
	var l lifetime
	began := time.Now()
	box, err := b.sandbox(ctx, closedPolicy)
	if err != nil {
		return l, err
	}
	l.create = time.Since(began)
	if err := b.command(ctx, box.ID, "/bin/true"); err != nil {
		return l, err
	}
	l.first = time.Since(began)
	began = time.Now()
	if _, err := b.daemon.client.RunSummary(ctx, box.Run); err != nil { // waits for the command's records
		return l, err
	}
	l.settle = time.Since(began)
	began = time.Now()
	err = b.daemon.client.DestroySandbox(ctx, box.ID)
	l.destroy = time.Since(began)
	return l, err
}

// command runs a command to its end, whose exit must be 0.
func (b *bench) command(ctx context.Context, sandbox string, argv ...string) error {
	cmd, err := b.daemon.client.StartCommand(ctx, sandbox, api.StartCommand{Argv: argv})
	if err != nil {
		return err
	}
	att, err := b.daemon.client.Attach(ctx, sandbox, cmd.ID, 0)
	if err != nil {
		return err
	}
	defer func() { _ = att.Close() }()
	var said []byte
	for event, err := range att.Events() {
		if err != nil {
			return err
		}
		said = append(append(said, event.Stdout...), event.Stderr...)
		if event.Exit != nil && event.Exit.Code != 0 {
			return fmt.Errorf("%v ended with %d: %s", argv, event.Exit.Code, said)
		}
	}
	return nil
}
