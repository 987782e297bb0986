package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

const (
	indexTarget = 5.0 // ms
	indexRounds = 300
	judgeRounds = 30
	jsonIndex   = "application/vnd.pypi.simple.v1+json"
)

// manyPolicy allows the versions below the one given of 3,000, and asks for an
// age, so that each has to be looked at.
func manyPolicy(below int) string {
	return fmt.Sprintf("name: bench-index\npackages:\n  default: deny\n  min_release_age: 7d\nallowed_packages:\n  python:\n    - name: small\n    - name: many\n      version: \"<%d.%d\"\n", 10+below/10, below%10)
}

// measureIndex asks for a page of 3,000 versions on a connection that is kept:
// at the gateway's door, as the keeper does, from inside, and for the first
// time under a policy.
func measureIndex(ctx context.Context, b *bench) error {
	if err := b.keepPage(ctx); err != nil {
		return err
	}
	if err := b.indexAgain(ctx); err != nil {
		return err
	}
	n := b.rounds(judgeRounds)
	var first sample
	for i := range n + 1 {
		b.progress.round("3,000 versions judged anew", i, n)
		took, err := b.indexAnew(ctx, i)
		if err != nil {
			return err
		}
		if i > 0 {
			first.add(took)
		}
	}
	b.table.add(figure("  for the first time under a policy", unitTime, first))
	return nil
}

// keepPage puts the page, as the gateway renders it, where the static server shows it.
func (b *bench) keepPage(ctx context.Context) (err error) {
	dir, err := b.staticDir()
	if err != nil {
		return err
	}
	box, err := b.sandbox(ctx, manyPolicy(100))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	door, err := b.openDoor(ctx, box.ID, indexHost)
	if err != nil {
		return err
	}
	defer door.close()
	body, _, err := door.fetch(ctx, "/simple/many/")
	return errors.Join(err, show(filepath.Join(dir, "many.json"), body))
}

func (b *bench) indexAgain(ctx context.Context) (err error) {
	box, d, done, err := b.besideStatic(ctx, manyPolicy(100))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	door, err := b.openDoor(ctx, box.ID, indexHost)
	if err != nil {
		return err
	}
	defer door.close()
	n := b.rounds(indexRounds)
	var inside, outside, static sample
	for i := range n + 1 {
		b.progress.round("3,000 versions", i, n)
		got, err := d.do(ask{Verb: "get", Host: indexHost, Path: "/simple/many/", Headers: map[string]string{"Accept": jsonIndex}})
		if err != nil {
			return err
		}
		took, err := door.get(ctx, "/simple/many/")
		if err != nil {
			return err
		}
		same, err := d.do(ask{Verb: "get", Host: "127.0.0.1:" + strconv.Itoa(securePort), Path: "/many.json"})
		if err != nil {
			return err
		}
		if i > 0 {
			static.add(same.took())
			inside.add(got.took())
			outside.add(took)
		}
	}
	b.table.add(figure("3,000 versions, judged and served", unitTime, outside).
		target(fmt.Sprintf("<= %.0f", indexTarget), outside.median() <= indexTarget))
	b.table.add(figure("  to Python inside", unitTime, inside).beside("the bytes from a TLS server inside", static))
	return nil
}

// indexAnew is the first request under a policy of its own: the page is in the
// gateway's memory, its verdicts are not.
func (b *bench) indexAnew(ctx context.Context, i int) (took time.Duration, err error) {
	box, err := b.daemon.client.CreateSandbox(ctx, api.CreateSandbox{Template: "debian", Policy: api.Policy{Document: []byte(manyPolicy(i))}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	door, err := b.openDoor(ctx, box.ID, indexHost)
	if err != nil {
		return 0, err
	}
	defer door.close()
	if _, err := door.get(ctx, "/simple/small/"); err != nil { // the connection is made
		return 0, err
	}
	return door.get(ctx, "/simple/many/")
}
