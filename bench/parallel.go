package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/api"
)

const (
	parallelBoxes    = 8
	parallelInBox    = 8
	parallelInstalls = parallelBoxes * parallelInBox
	parallelRounds   = 3
)

// measureParallel has 64 installs of the ten packages begin at once, eight in
// each of eight sandboxes, which share the gateway; beside them the same with a
// static server in each sandbox. One that fails fails the bench.
func measureParallel(ctx context.Context, b *bench) (err error) {
	drivers, done, err := b.manyServing(ctx)
	if err != nil {
		return errors.Join(err, done())
	}
	defer func() { err = errors.Join(err, done()) }()
	var ours, theirs sample
	n := b.rounds(parallelRounds)
	if _, err := b.allAtOnce(drivers[:1], indexBase+"simple/"); err != nil { // they are in the cache from now on
		return err
	}
	for i := range n {
		b.progress.round(fmt.Sprint(parallelInstalls, " installs at once"), i, n)
		for _, from := range []struct {
			sample *sample
			index  string
		}{{&ours, indexBase}, {&theirs, plainBase()}} {
			took, err := b.allAtOnce(drivers, from.index+"simple/")
			if err != nil {
				return err
			}
			from.sample.add(took)
		}
	}
	highest, err := b.highest("gateway")
	if err != nil {
		return err
	}
	b.table.add(figure(fmt.Sprintf("%d installs at once, ten packages, warm", parallelInstalls), unitTime, ours).
		beside("from a static server in each sandbox", theirs))
	b.table.add(figure("  gateway's highest RSS until then", unitMemory, sample{highest}))
	return nil
}

// manyServing makes the sandboxes. Destroy them with done, also after an error.
func (b *bench) manyServing(ctx context.Context) (drivers []*driver, done func() error, err error) {
	var ends []func() error
	done = func() error {
		var errs []error
		for _, end := range ends {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	}
	static, err := b.staticDir()
	if err != nil {
		return nil, done, err
	}
	server, err := b.serverDir()
	if err != nil {
		return nil, done, err
	}
	for range parallelBoxes {
		d, end, err := b.serving(ctx, tenPolicy(b.wheels),
			api.Mount{Source: server, Destination: serverMount}, api.Mount{Source: static, Destination: staticMount})
		if err != nil {
			return nil, done, err
		}
		drivers, ends = append(drivers, d), append(ends, end)
	}
	return drivers, done, nil
}

// allAtOnce begins all installs and gives the time until the last has ended.
func (b *bench) allAtOnce(drivers []*driver, index string) (time.Duration, error) {
	argv := []string{"uv", "pip", "install", "--quiet", "--no-cache", "--link-mode", "copy", "--default-index", index, "--target"}
	var many [][]string
	for i := range parallelInBox {
		install := append(slices.Clip(argv), fmt.Sprintf("/home/agent/target-%d", i))
		for _, w := range b.wheels {
			install = append(install, w.project)
		}
		many = append(many, install)
	}
	began := time.Now()
	var all errgroup.Group
	for _, d := range drivers {
		all.Go(func() error {
			_, err := d.do(ask{Verb: "many", Many: many})
			return err
		})
	}
	err := all.Wait()
	took := time.Since(began)
	for _, d := range drivers {
		_, gone := d.do(shell("rm -rf /home/agent/target-*"))
		err = errors.Join(err, gone)
	}
	return took, err
}
