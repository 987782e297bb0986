package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Targets of the part run.
const (
	runRatio  = 1.8
	runRounds = 30
)

// measureRun takes turns between a whole `cofferdam run -- true`, as a person types it,
// and `runsc do true`: the same kernel over the same host, with nothing around it.
func measureRun(ctx context.Context, b *bench) error {
	for _, template := range []string{"host", "debian"} {
		var ours, theirs sample
		n := b.rounds(runRounds)
		for i := range n + 1 { // the first makes the template and its baseline
			b.progress.round("run on "+template+", against runsc do", i, n)
			took, err := b.process(ctx, "cofferdam", "run", "--template", template, "--", "true")
			if err != nil {
				return err
			}
			bare, err := b.process(ctx, "runsc", "--network=none", "--root="+filepath.Join(b.dir, "do"), "do", "true")
			if err != nil {
				return err
			}
			if i > 0 {
				ours.add(took)
				theirs.add(bare)
			}
		}
		b.table.add(figure("cofferdam run -- true, "+template, unitTime, ours).beside("runsc do true", theirs).
			target(fmt.Sprintf("<= %.1f x", runRatio), ours.median() <= runRatio*theirs.median()))
	}
	return nil
}

// process runs one of the binaries to its end, as a client of the bench's daemon.
func (b *bench) process(ctx context.Context, name string, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.opts.bin, name), args...)
	cmd.Env = append(os.Environ(), b.daemon.environment()...)
	var said bytes.Buffer
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", name, err, said.Bytes())
	}
	return time.Since(began), nil
}
