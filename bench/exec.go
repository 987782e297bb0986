package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

const (
	execRounds = 500
	pingRounds = 2000
	// loginShellMore is how many ms more a command may take by a login shell, which reads its profile. A ratio to the
	// command without a shell would grow as that one gets faster.
	loginShellMore = 15
	besideRatio    = 1.1 // of a command in a sandbox where nothing else runs
)

// measureExec takes turns between a command of the API, a process that a program in the same
// sandbox starts and waits for, and a command in a sandbox where nothing else runs.
func measureExec(ctx context.Context, b *bench) (err error) {
	box, err := b.sandbox(ctx, closedPolicy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	d, err := b.startDriver(ctx, box.ID)
	if err != nil {
		return err
	}
	defer d.close()
	idle, err := b.sandbox(ctx, closedPolicy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, idle.ID)) }()
	n := b.rounds(execRounds)
	var ours, alone, shell, inside sample
	for i := range n + 1 {
		b.progress.round("exec", i, n)
		began := time.Now()
		if err := b.command(ctx, box.ID, "/bin/true"); err != nil {
			return err
		}
		took := time.Since(began)
		began = time.Now()
		if err := b.command(ctx, idle.ID, "/bin/true"); err != nil {
			return err
		}
		tookAlone := time.Since(began)
		began = time.Now()
		if err := b.command(ctx, box.ID, "/bin/bash", "-l", "-c", "true"); err != nil {
			return err
		}
		byShell := time.Since(began)
		spawned, err := d.do(ask{Verb: "spawn", Argv: []string{"/bin/true"}})
		if err != nil {
			return err
		}
		if i > 0 {
			ours.add(took)
			alone.add(tookAlone)
			shell.add(byShell)
			inside.add(spawned.took())
		}
	}
	b.table.add(figure("exec /bin/true", unitTime, ours).beside("spawn and wait inside", inside))
	b.table.add(besideOthers(ours, alone))
	b.table.add(loginShell(shell, ours))
	return b.pings(ctx, box.ID)
}

// loginShell is the row of a command as the SDKs start it, beside the same without a shell.
func loginShell(shell, plain sample) row {
	return figure("  as the SDKs do, by a login shell", unitTime, shell).beside("the process without a shell", plain).
		target(fmt.Sprintf("<= %d ms more", loginShellMore), shell.median() <= plain.median()+loginShellMore)
}

// besideOthers is the row of a command beside a running process, as a server or a kernel is.
func besideOthers(beside, alone sample) row {
	return figure("  beside a running process", unitTime, beside).beside("where nothing else runs", alone).
		target(fmt.Sprintf("<= %.1f x", besideRatio), beside.median() <= besideRatio*alone.median())
}

// pings measures the way to the guest agent and back.
func (b *bench) pings(ctx context.Context, box string) error {
	var ping sample
	for i := range b.rounds(pingRounds) {
		if i%100 == 0 {
			b.progress.round("ping", i, b.rounds(pingRounds))
		}
		began := time.Now()
		if _, err := b.daemon.keeper.Call(ctx, box, channel.Call{Kind: channel.CallPing}); err != nil {
			return err
		}
		ping.add(time.Since(began))
	}
	b.table.add(figure("ping of the guest agent", unitTime, ping))
	return nil
}
