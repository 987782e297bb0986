package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

// Targets and rounds of the part life.
const (
	claimTarget, claimTail = 10.0, 30.0 // ms, median and p99
	wireExecTarget         = 10.0
	forkTarget             = 160.0
	wireDestroyTarget      = 15.0
	lifeRounds             = 40
	forkRounds             = 15
	crowd                  = 50
	poolSize               = crowd
	fileMB                 = 100
	fileRounds             = 5
)

// Two policies with other limits, so that only one's sandboxes come out of the
// pool.
const (
	coldPolicy   = "name: cold\ndefaults: { max_memory_mb: 1024 }\npackages:\n  default: deny\n"
	pooledPolicy = "name: pooled\ndefaults: { max_memory_mb: 1536 }\npackages:\n  default: deny\n"
)

// life is the part's own installation: one that listens and has a pool.
type life struct {
	*bench

	daemon *daemonProcess
	wire   *wire
}

// measureLife measures what an SDK waits for, over the wire that it speaks.
func measureLife(ctx context.Context, b *bench) (err error) {
	l, err := b.startLife(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.daemon.stop()) }()
	for _, measure := range []func(context.Context) error{l.cold, l.claims, l.execs, l.copies, l.pauses, l.together, l.files, l.idle} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) startLife(ctx context.Context) (*life, error) {
	b.progress.say("starting a daemon that listens")
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	own := &bench{opts: b.opts, progress: b.progress, dir: filepath.Join(b.dir, "life"), home: b.home, registry: b.registry}
	if err := os.Mkdir(own.dir, 0o711); err != nil { // the gateway, another user, passes through
		return nil, err
	}
	if err := own.buildTemplate(ctx, b.home); err != nil {
		return nil, err
	}
	if err := b.registry.configure(own.state(), own.dir, dockerHost(own.dir)); err != nil {
		return nil, err
	}
	if err := appendTo(filepath.Join(own.state(), "config.yaml"), fmt.Sprintf(
		"listen: { address: %q, requests_per_second: 100000, burst: 100000 }\npool: [ { template: debian, policy: pooled, size: %d } ]\n", address, poolSize)); err != nil {
		return nil, err
	}
	d, err := own.startDaemon(ctx, "l")
	if err != nil {
		return nil, err
	}
	key, err := clientOf(ctx, d)
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return &life{bench: b, daemon: d, wire: newWire("http://"+address, key)}, nil
}

// clientOf makes the policies and a token that may choose them.
func clientOf(ctx context.Context, d *daemonProcess) (secret string, err error) {
	for name, text := range map[string]string{"cold": coldPolicy, "pooled": pooledPolicy} {
		if _, err := d.client.PutPolicy(ctx, name, api.PutPolicy{Document: []byte(text)}); err != nil {
			return "", err
		}
	}
	made, err := d.client.MakeToken(ctx, api.MakeToken{Name: "bench", Policy: "cold", Policies: []string{"pooled"}})
	return made.Secret, err
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// span is how long the parts of a sandbox's life took.
type span struct {
	create  time.Duration // until it is there
	first   time.Duration // from the same moment to the end of its first command
	destroy time.Duration
}

// born is one sandbox's way to the end of its first command, and its end.
func (l *life) born(ctx context.Context, policy string) (s span, err error) {
	began := time.Now()
	box, err := l.wire.create(ctx, policy)
	if err != nil {
		return s, err
	}
	s.create = time.Since(began)
	err = l.wire.run(ctx, box, "/bin/true")
	s.first = time.Since(began)
	began = time.Now()
	err = errors.Join(err, l.wire.kill(ctx, box))
	s.destroy = time.Since(began)
	return s, err
}

// cold makes sandboxes from nothing: alone, beside bare runsc, and fifty at once.
func (l *life) cold(ctx context.Context) error {
	bare, err := l.newBareRun(ctx)
	if err != nil {
		return err
	}
	var ours, theirs, destroys sample
	n := l.rounds(lifeRounds)
	for i := range n + 1 {
		l.progress.round("create over the wire, cold", i, n)
		one, err := l.born(ctx, "cold")
		if err != nil {
			return err
		}
		run, err := bare.once(ctx)
		if err != nil {
			return err
		}
		if i > 0 {
			ours.add(one.first)
			destroys.add(one.destroy)
			theirs.add(run)
		}
	}
	l.table.add(figure("wire: create, first command finished", unitTime, ours).beside("runsc run /bin/true", theirs))
	destroyed := fmt.Sprintf("<= %.0f", wireDestroyTarget)
	l.table.add(figure("  destroy right after it, nothing left", unitTime, destroys).target(destroyed, destroys.median() <= wireDestroyTarget))
	rested, err := l.restedEnds(ctx)
	if err != nil {
		return err
	}
	l.table.add(figure("  destroy at rest, nothing left", unitTime, rested).target(destroyed, rested.median() <= wireDestroyTarget))
	l.progress.say("fifty creates at once")
	many, err := atOnce(crowd, func(int) (time.Duration, error) {
		one, err := l.born(ctx, "cold")
		return one.first, err
	})
	if err != nil {
		return err
	}
	l.table.add(figure("  the same, 50 at once", unitTime, many))
	return nil
}

// restedEnds destroys sandboxes in which no command has just ended, so that nothing is
// to be looked for on their disks.
func (l *life) restedEnds(ctx context.Context) (ends sample, err error) {
	n := l.rounds(lifeRounds)
	for i := range n + 1 {
		l.progress.round("ends of sandboxes at rest", i, n)
		box, err := l.wire.create(ctx, "cold")
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := l.wire.kill(ctx, box); err != nil {
			return nil, err
		}
		if i > 0 {
			ends.add(time.Since(began))
		}
	}
	return ends, nil
}

// atOnce does n things at the same time, and gives how long each took.
func atOnce(n int, do func(i int) (time.Duration, error)) (sample, error) {
	took, errs := make([]time.Duration, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { took[i], errs[i] = do(i) })
	}
	all.Wait()
	var s sample
	for _, d := range took {
		s.add(d)
	}
	return s, errors.Join(errs...)
}

// claims takes sandboxes out of the pool, each when the pool is full.
func (l *life) claims(ctx context.Context) error {
	var claims, creates sample
	n := l.rounds(2 * lifeRounds)
	for i := range n + 1 {
		l.progress.round("claims out of the pool", i, n)
		if err := l.awaitPool(ctx, poolSize); err != nil {
			return err
		}
		one, err := l.born(ctx, "pooled")
		if err != nil {
			return err
		}
		if i > 0 {
			claims.add(one.first)
			creates.add(one.create)
		}
	}
	l.table.add(figure("claim out of the pool, first command finished", unitTime, claims).
		target(fmt.Sprintf("<= %.0f, p99 <= %.0f", claimTarget, claimTail), claims.median() <= claimTarget && claims.quantile(0.99) <= claimTail))
	l.table.add(figure("  of that, until the sandbox is there", unitTime, creates))
	var crowded sample
	for range l.rounds(3) {
		if err := l.awaitPool(ctx, poolSize); err != nil {
			return err
		}
		s, err := atOnce(poolSize, func(int) (time.Duration, error) {
			one, err := l.born(ctx, "pooled")
			return one.first, err
		})
		if err != nil {
			return err
		}
		crowded = append(crowded, s...)
	}
	l.table.add(figure(fmt.Sprintf("  %d at once, all of the pool", poolSize), unitTime, crowded))
	return nil
}

// execs runs processes in a sandbox that is there.
func (l *life) execs(ctx context.Context) error {
	box, err := l.wire.create(ctx, "cold")
	if err != nil {
		return err
	}
	var alone, shell sample
	n := l.rounds(5 * lifeRounds)
	for i := range n + 1 {
		l.progress.round("execs over the wire", i, n)
		began := time.Now()
		if err := l.wire.run(ctx, box, "/bin/true"); err != nil {
			return err
		}
		if i > 0 {
			alone.add(time.Since(began))
		}
		began = time.Now()
		if err := l.wire.run(ctx, box, "/bin/bash", "-l", "-c", "true"); err != nil {
			return err
		}
		if i > 0 {
			shell.add(time.Since(began))
		}
	}
	many, err := atOnce(crowd, func(int) (time.Duration, error) {
		began := time.Now()
		err := l.wire.run(ctx, box, "/bin/true")
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	l.table.add(figure("exec of a process over the wire", unitTime, alone).
		target(fmt.Sprintf("<= %.0f", wireExecTarget), alone.median() <= wireExecTarget))
	l.table.add(loginShell(shell, alone))
	l.table.add(figure("  50 at once, in one sandbox", unitTime, many))
	return l.wire.kill(ctx, box)
}

// files moves one up and down.
func (l *life) files(ctx context.Context) error {
	box, err := l.wire.create(ctx, "cold")
	if err != nil {
		return err
	}
	content := bytes.Repeat([]byte("0123456789abcdef"), fileMB*1e6/16)
	var up, down sample
	speed := func(began time.Time) float64 { return fileMB / time.Since(began).Seconds() }
	for range l.rounds(fileRounds) {
		began := time.Now()
		if err := l.wire.put(ctx, box, "/home/user/large", bytes.NewReader(content)); err != nil {
			return err
		}
		up = append(up, speed(began))
		began = time.Now()
		n, err := l.wire.get(ctx, box, "/home/user/large")
		if err != nil {
			return err
		}
		if n != int64(len(content)) {
			return fmt.Errorf("of a file of %d bytes %d came back", len(content), n)
		}
		down = append(down, speed(began))
	}
	l.table.add(figure(fmt.Sprintf("upload of %d MB", fileMB), unitSpeed, up))
	l.table.add(figure("  its download", unitSpeed, down))
	return l.wire.kill(ctx, box)
}
