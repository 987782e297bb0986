package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// callableProgram is embedded, which takes a package-level variable.
//
//go:embed callable.py
var callableProgram string

const callableRounds = 15 // of twenty calls each

// measureCallable takes turns between calls of a Python function from a sandbox, through the
// toolkit's provider, and the same calls of a plain HTTP server from a process on the host.
func measureCallable(ctx context.Context, b *bench) error {
	python, err := pythonOf(ctx, b, "python", "httpx", "httpx==0.28.1")
	if err != nil {
		return err
	}
	workspace := filepath.Join(b.dir, "callable")
	if err := os.Mkdir(workspace, 0o700); err != nil {
		return err
	}
	sources, err := filepath.Abs("python")
	if err != nil {
		return err
	}
	variables := append(b.daemon.environment(), "PYTHONPATH="+sources, "COFFERDAM_BINARY="+filepath.Join(b.opts.bin, "cofferdam"), "PYTHONDONTWRITEBYTECODE=1")
	program, err := startPython(ctx, "the provider of functions", python, callableProgram, variables, workspace)
	if err != nil {
		return err
	}
	defer program.close()
	var inside, outside sample
	n := b.rounds(callableRounds)
	for i := range n + 1 {
		b.progress.round("callable", i, n)
		line, err := program.measure()
		if err != nil {
			return err
		}
		var took struct{ Inside, Outside []float64 }
		if err := json.Unmarshal(line, &took); err != nil {
			return fmt.Errorf("the provider of functions said %q: %w", line, err)
		}
		if i > 0 {
			inside, outside = append(inside, milliseconds(took.Inside)...), append(outside, milliseconds(took.Outside)...)
		}
	}
	b.table.add(figure("a Python function, called from a sandbox", unitTime, inside).beside("a plain HTTP server of it, on the host", outside))
	return nil
}

func milliseconds(seconds []float64) sample {
	var s sample
	for _, each := range seconds {
		s = append(s, each*1000)
	}
	return s
}
