package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	installRatio  = 1.10
	installRounds = 25
)

// measureInstall has pip install the ten packages into fresh directories, in
// turn from the gateway and from a plain static index in the same sandbox.
func measureInstall(ctx context.Context, b *bench) (err error) {
	_, d, done, err := b.besideStatic(ctx, tenPolicy(b.wheels))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var ours, theirs sample
	n := b.rounds(installRounds)
	for i := range n + 1 {
		b.progress.round("pip install of ten packages", i, n)
		for _, from := range []struct {
			sample *sample
			index  string
		}{{&ours, "https://" + indexHost}, {&theirs, fmt.Sprintf("http://127.0.0.1:%d", plainPort)}} {
			took, err := b.install(d, from.index+"/simple/")
			if err != nil {
				return err
			}
			if i > 0 {
				from.sample.add(took)
			}
		}
	}
	b.table.add(figure("pip install, ten packages, warm", unitTime, ours).beside("from a static index inside", theirs).
		target(fmt.Sprintf("<= %.2f x", installRatio), ours.median() <= installRatio*theirs.median()))
	return nil
}

// install times one pip; nothing of it stays. pip's own cache is off, so that
// it is the gateway's that is measured.
func (b *bench) install(d *driver, index string) (time.Duration, error) {
	const target = "/home/agent/target"
	argv := []string{"pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check", "--target", target, "--index-url", index}
	for _, w := range b.wheels {
		argv = append(argv, w.project)
	}
	got, err := d.do(ask{Verb: "run", Argv: argv})
	if err != nil {
		return 0, err
	}
	_, err = d.do(ask{Verb: "run", Argv: []string{"rm", "-r", target}})
	return got.took(), err
}

// tenPolicy allows the ten packages by name.
func tenPolicy(wheels []wheel) string {
	var text strings.Builder
	text.WriteString("name: bench-install\npackages:\n  default: deny\nallowed_packages:\n  python:\n")
	for _, w := range wheels {
		text.WriteString("    - name: " + w.project + "\n")
	}
	return text.String()
}
