package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// specName is the file with what an instance is made of, for its snapshots.
const specName = "spec.json"

// Create lays the ground, has the service make a container on it, and the keeper start its
// bridge; it returns when PID 1 answers.
func (e *Engine) Create(ctx context.Context, spec engine.Spec) (engine.Instance, error) {
	return e.makeInstance(ctx, spec, "")
}

// makeInstance does what Create does, with an archive of what the writable layer holds, or "".
func (e *Engine) makeInstance(ctx context.Context, spec engine.Spec, upper string) (engine.Instance, error) {
	spec, err := hostproc.Complete(spec)
	if err != nil {
		return nil, err
	}
	found, err := e.findService(ctx)
	if err != nil {
		return nil, err
	}
	if !found.runtime.ownKernel {
		if err := mounts.NoDoors(ctx, spec.Mounts); err != nil {
			return nil, err
		}
	}
	dir, err := e.home.Claim(spec.ID)
	if err != nil {
		return nil, err
	}
	inst, err := e.startInstance(ctx, spec, found.runtime, dir, upper)
	if err != nil {
		// The caller may have given up; its remains go all the same.
		return nil, errors.Join(err, e.sweepTraces(context.WithoutCancel(ctx), spec.ID))
	}
	return inst, nil
}

func (e *Engine) startInstance(ctx context.Context, spec engine.Spec, r runtimeOf, dir, upper string) (engine.Instance, error) {
	if err := writeJSON(filepath.Join(dir, specName), spec); err != nil {
		return nil, err
	}
	container, err := e.createContainer(ctx, spec, r, dir, upper)
	if err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(dir, taskName), task{Task: taskBridge, Host: e.cfg.Host, Container: container}); err != nil {
		return nil, err
	}
	inst := e.instance(spec.ID, handleState{Container: container, Runtime: r.name})
	meta, err := json.Marshal(inst.Handle())
	if err != nil {
		return nil, err
	}
	group, err := e.home.BridgeGroup(spec.Share, spec.ID)
	if err != nil {
		return nil, err
	}
	var joins []string
	if group != nil {
		joins = group.Joins()
	}
	log := filepath.Join(dir, logName)
	err = e.home.Launch(ctx, keeper.Launch{
		ID: spec.ID, Dir: dir, Log: log, Env: stageEnvironment(), Meta: meta, Attached: true, CgroupProcs: joins,
		Argv: slices.Concat(e.cfg.Stage, []string{dir}),
	})
	if err != nil {
		return nil, fmt.Errorf("start sandbox %s: %w", spec.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, hostproc.LongestWait)
	defer cancel()
	if _, err := e.keeper.Call(ctx, spec.ID, channel.Call{Kind: channel.CallPing}); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "sandbox %s does not start in a container of Docker%s", spec.ID, lastLine(log))
	}
	return inst, nil
}

// createContainer lays the ground and has the service make the container, which it does not start.
func (e *Engine) createContainer(ctx context.Context, spec engine.Spec, r runtimeOf, dir, upper string) (id string, err error) {
	s, err := e.dialService(ctx)
	if err != nil {
		return "", err
	}
	defer s.Close() //nolint:errcheck // nothing is on its way
	if err := mounts.Points(spec); err != nil {
		return "", err
	}
	g, p := e.ground(spec.ID), planOf(spec, dir)
	p.blanks = mounts.BlanksOf(e.cfg.StateDir)
	p.upper = upper
	var entries []rootEntry
	err = s.withinMounts(ctx, func() error {
		entries, err = g.layGround(ctx, p)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := e.markTraces(); err != nil {
		return "", err
	}
	files, err := s.openFileLimit(ctx)
	if err != nil {
		return "", err
	}
	for range imageTries {
		var image string
		if image, err = e.skeleton(ctx, s, entries); err != nil {
			return "", err
		}
		var made client.ContainerCreateResult
		if made, err = s.ContainerCreate(ctx, e.container(spec, r, g, entries, image, files)); err == nil {
			return made.ID, nil
		}
		if !isGone(err) {
			break
		}
	}
	return "", fmt.Errorf("make a container: %w", err)
}

// imageTries is how often a skeleton is looked for that makes room for another's before its
// container is made.
const imageTries = 3

// stageEnvironment is a stage's.
func stageEnvironment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// lastLine is the end of a log, as one clause.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > mostTold {
		_, _ = f.Seek(-mostTold, io.SeekEnd) // from the start, if that fails
	}
	data, _ := io.ReadAll(io.LimitReader(f, mostTold))
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(data), "?")), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Sprintf(" (%s)", strings.Map(printable, last))
	}
	return ""
}

// mostTold bounds the end of a log that an error tells.
const mostTold = 1 << 10

func printable(r rune) rune {
	if r < ' ' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}
