package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// crowds opens a thousand connections that nobody uses, and has two hundred of them used.
func (n *network) crowds(ctx context.Context) (err error) {
	before, err := n.held()
	if err != nil {
		return err
	}
	alone, err := n.beside("a small request, before the idle connections")
	if err != nil {
		return err
	}
	var boxes []*farBox
	defer func() {
		for _, box := range boxes {
			err = errors.Join(err, box.done())
		}
	}()
	for i := range idleBoxes {
		n.progress.round("sandboxes for connections", i, idleBoxes)
		box, err := n.make(ctx, false)
		if err != nil {
			return err
		}
		boxes = append(boxes, box)
	}
	n.progress.say("%d idle connections", idleBoxes*idleInEach)
	if err := together(boxes, func(box *farBox) error { return box.open(passed(), idleInEach) }); err != nil {
		return err
	}
	after, err := n.held()
	if err != nil {
		return err
	}
	crowded, err := n.beside("a small request, beside idle connections")
	if err != nil {
		return err
	}
	idle := fmt.Sprintf("%d idle connections", idleBoxes*idleInEach)
	for _, role := range []string{"gateway", "keeper"} {
		n.table.add(figure(idle+", the "+role, unitMemory, sample{after[role]}).beside("before them", sample{before[role]}))
	}
	n.table.add(figure("  a small request beside them", unitTime, crowded).beside("before them", alone))
	return n.busy(boxes)
}

// held is the memory of those that hold connections, in MB.
func (n *network) held() (map[string]float64, error) {
	roles, err := n.daemon.roles()
	if err != nil {
		return nil, err
	}
	got := map[string]float64{}
	for _, role := range []string{"gateway", "keeper"} {
		if got[role], _, err = memoryOf(roles[role]); err != nil {
			return nil, err
		}
	}
	return got, nil
}

// beside makes small requests one after another.
func (n *network) beside(what string) (sample, error) {
	var all sample
	rounds := n.rounds(besideRounds)
	for i := range rounds + 1 {
		n.progress.round(what, i, rounds)
		s, err := n.box.ask(passed(), 1, 1)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			all = append(all, s...)
		}
	}
	return all, nil
}

// together does the same with all sandboxes at once.
func together(boxes []*farBox, do func(*farBox) error) error {
	var all errgroup.Group
	for _, box := range boxes {
		all.Go(func() error { return do(box) })
	}
	return all.Wait()
}

// busy has connections of all sandboxes used at once.
func (n *network) busy(boxes []*farBox) error {
	what := fmt.Sprintf("a small request on each of %d connections at once", len(boxes)*busyInEach)
	n.progress.say("connections by a plain relay")
	err := n.relay.during(func() error {
		return together(boxes, func(box *farBox) error { return box.open(direct(), busyInEach) })
	})
	if err != nil {
		return err
	}
	got := map[way]sample{}
	rounds := n.rounds(busyRounds)
	for i := range rounds + 1 {
		n.progress.round(what, i, rounds)
		for _, to := range []way{passed(), direct()} {
			parts := make(chan sample, len(boxes))
			err := together(boxes, func(box *farBox) error {
				s, err := box.ask(to, busyInEach, 1)
				parts <- s
				return err
			})
			if err != nil {
				return err
			}
			for range boxes {
				if s := <-parts; i > 0 {
					got[to] = append(got[to], s...)
				}
			}
		}
	}
	n.table.add(figure(what+", passed through", unitTime, got[passed()]).beside("TLS by a plain relay", got[direct()]))
	return nil
}

const (
	floodLines = 50
	floodRatio = 2.0 // of an install's p99
)

// flood has one run make requests as fast as it gets answers, and new connections beside
// them, while another one installs packages.
func (n *network) flood(ctx context.Context) (err error) {
	_, d, done, err := n.besideStatic(ctx, tenPolicy(n.wheels))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	flooding := func(verb string) error {
		_, err := n.box.asker.do(ask{Verb: verb, Host: passed().address(), Path: smallPath(), Connections: floodLines})
		return err
	}
	var calm, flooded sample
	rounds := n.rounds(floodRounds)
	for i := range rounds + 1 {
		n.progress.round("an install beside another run's flood", i, rounds)
		alone, err := n.install(d, "https://"+indexHost+"/simple/")
		if err != nil {
			return err
		}
		var beside time.Duration
		if err := flooding("flood"); err != nil {
			return err
		}
		beside, err = n.install(d, "https://"+indexHost+"/simple/")
		if err := errors.Join(err, flooding("calm")); err != nil {
			return err
		}
		if i > 0 {
			calm.add(alone)
			flooded.add(beside)
		}
	}
	n.table.add(figure("pip install beside another run's flood", unitTime, flooded).beside("without it", calm).
		target(fmt.Sprintf("p99 <= %.0f x", floodRatio), flooded.quantile(0.99) <= floodRatio*calm.quantile(0.99)))
	return nil
}
