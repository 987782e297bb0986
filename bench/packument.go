package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
)

const (
	packumentTarget   = 5.0   // ms
	packumentMemory   = 150.0 // MB
	packumentColds    = 5
	packumentPolicies = 30
	packumentRounds   = 200
	identityRounds    = 20
)

// npmAsks is how npm asks for a packument when it locks; unpackedAsks is the
// same without compression.
func npmAsks() map[string]string {
	return map[string]string{"Accept": "application/json", "Accept-Encoding": "gzip"}
}

func unpackedAsks() map[string]string { return map[string]string{"Accept": "application/json"} }

// largePolicy allows the versions below the one given, and asks for an age, so
// that each has to be looked at.
func largePolicy(below int) string {
	var names strings.Builder
	for i := range packumentColds + 1 {
		fmt.Fprintf(&names, "    - name: %s%d\n      version: \"<%s\"\n", largeName, i, largeVersion(below))
	}
	return "name: bench-packument\npackages:\n  default: deny\n  min_release_age: 7d\nallowed_packages:\n  node:\n" + names.String()
}

// measurePackument asks at the gateway's door for packuments of 20 MB: ones
// that it never saw, one under policies that it never judged it by, and one
// again and again. The memory is the gateway's highest until then.
func measurePackument(ctx context.Context, b *bench) error {
	var cold, anew sample
	for i := range packumentColds + 1 { // the first warms up
		if _, err := b.registry.npm.packument(fmt.Sprint(largeName, i)); err != nil {
			return err
		}
	}
	for i := range packumentColds + 1 {
		b.progress.round("packument of 20 MB, cold", i, packumentColds)
		took, err := b.packumentOnce(ctx, i, largeVersions-1)
		if err != nil {
			return err
		}
		if i > 0 {
			cold.add(took)
		}
	}
	for i := range packumentPolicies {
		b.progress.round("packument of 20 MB, judged anew", i, packumentPolicies)
		took, err := b.packumentOnce(ctx, 0, largeVersions/2+i*largeVersions/2/packumentPolicies)
		if err != nil {
			return err
		}
		anew.add(took)
	}
	highest, err := b.highest("gateway")
	if err != nil {
		return err
	}
	warm, unpacked, size, err := b.packumentAgain(ctx)
	if err != nil {
		return err
	}
	b.table.add(figure(fmt.Sprintf("packument of %.0f MB, never seen", float64(size)/1e6), unitTime, cold))
	b.table.add(figure("  for the first time under a policy", unitTime, anew))
	b.table.add(figure("  again, as npm asks", unitTime, warm).target(fmt.Sprintf("<= %.0f", packumentTarget), warm.median() <= packumentTarget))
	b.table.add(figure("  again, uncompressed", unitTime, unpacked))
	b.table.add(figure(fmt.Sprintf("  gateway's highest RSS, %d and %d policies", packumentColds+1, packumentPolicies), unitMemory, sample{highest}).
		target(fmt.Sprintf("< %.0f", packumentMemory), highest < packumentMemory))
	return nil
}

// packumentOnce asks for one of them in a new run.
func (b *bench) packumentOnce(ctx context.Context, which, below int) (took time.Duration, err error) {
	box, err := b.daemon.client.CreateSandbox(ctx, api.CreateSandbox{Template: "debian", Policy: api.Policy{Document: []byte(largePolicy(below))}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	door, err := b.openDoor(ctx, box.ID, npmHost)
	if err != nil {
		return 0, err
	}
	defer door.close()
	_, took, err = fetch(ctx, door.http, fmt.Sprint(npmBase, largeName, which), npmAsks())
	return took, err
}

// packumentAgain takes turns between the packed and the unpacked form.
func (b *bench) packumentAgain(ctx context.Context) (warm, unpacked sample, size int, err error) {
	box, err := b.sandbox(ctx, largePolicy(largeVersions-1))
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() { err = errors.Join(err, b.daemon.client.DestroySandbox(ctx, box.ID)) }()
	door, err := b.openDoor(ctx, box.ID, npmHost)
	if err != nil {
		return nil, nil, 0, err
	}
	defer door.close()
	n := b.rounds(packumentRounds)
	every := max(1, n/b.rounds(identityRounds))
	for i := range n + 1 {
		b.progress.round("packument of 20 MB, again", i, n)
		_, took, err := fetch(ctx, door.http, npmBase+largeName+"0", npmAsks())
		if err != nil {
			return nil, nil, 0, err
		}
		if i > 0 {
			warm.add(took)
		}
		if i%every != 0 {
			time.Sleep(atMost200) // a run is answered 200 requests in a second
			continue
		}
		body, took, err := fetch(ctx, door.http, npmBase+largeName+"0", unpackedAsks())
		if err != nil {
			return nil, nil, 0, err
		}
		unpacked.add(took)
		size = len(body)
	}
	return warm, unpacked, size, nil
}

// atMost200 keeps one run below the rate that the gateway allows it.
const atMost200 = 6 * time.Millisecond
