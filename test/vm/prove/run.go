//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/serve/doctor"
)

// examined: the host is told to have version 2, writable, and each engine to enforce all that
// it can on any host.
func examined(ctx context.Context) (string, error) {
	out, err := must(ctx, "cofferdam", "doctor", "--json")
	if err != nil {
		return "", err
	}
	var found doctor.Report
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	if c, err := said(found, "control groups"); err != nil || !strings.Contains(c.Sentence, "version 2, writable") {
		return "", errors.Join(fmt.Errorf("doctor says %+v of control groups", c), err)
	}
	for _, name := range []string{"engine gvisor", "engine runc"} {
		c, err := said(found, name)
		enforced, _, _ := strings.Cut(c.Sentence, "; has no")
		for _, control := range []engine.Control{engine.ControlMemory, engine.ControlCPU, engine.ControlPids} {
			if err != nil || !strings.Contains(enforced, string(control)) {
				return "", errors.Join(fmt.Errorf("doctor says %+v, without %s", c, control), err)
			}
		}
	}
	return "control groups version 2, writable; both engines limit memory, processors and processes", nil
}

// said is doctor's one line about something, which is fine. Beside it, it may warn of flaws
// of a program in the version that the distribution's is made from: whether the guest's
// packages have the fix is not the product's to know.
func said(all doctor.Report, name string) (found doctor.Check, err error) {
	lines := 0
	for _, c := range all.Checks {
		if c.Name == name && (c.Status != doctor.Warn || !strings.Contains(c.Sentence, "is the distribution's")) {
			found = c
			lines++
		}
	}
	if lines != 1 || found.Status != doctor.OK {
		return found, fmt.Errorf("it has %d lines about %s: %+v", lines, name, all.Checks)
	}
	return found, nil
}

// runGVisor: the main job, on a kernel that is not the guest's.
func runGVisor(ctx context.Context) (string, error) { return ran(ctx, "gvisor", false) }

// runRunc: the same in a container of the guest's kernel.
func runRunc(ctx context.Context) (string, error) { return ran(ctx, "runc", true) }

func ran(ctx context.Context, name string, sameKernel bool) (string, error) {
	out, err := must(ctx, "cofferdam", "run", "--engine", name, "--", "sh", "-c", "id -u; uname -rv; python3 -c 'print(40 + 2)'")
	if err != nil {
		return "", err
	}
	lines := strings.Split(out, "\n")
	var host unix.Utsname
	if err := unix.Uname(&host); err != nil {
		return "", err
	}
	own := unix.ByteSliceToString(host.Release[:])
	if len(lines) != 3 || lines[0] != "1000" || lines[2] != "42" || strings.Contains(lines[1], own) != sameKernel {
		return "", fmt.Errorf("a run says %q, beside a kernel %s", out, own)
	}
	if left := sandboxGroups(); len(left) > 0 {
		return "", fmt.Errorf("it left %v", left)
	}
	return "user 1000 on " + lines[1], nil
}

// memory: who uses more than the policy has is killed and told so; who uses less is not.
func memory(ctx context.Context) (string, error) {
	policy, err := policyFile("defaults: { max_memory_mb: 192 }\npackages: { default: deny }\n")
	if err != nil {
		return "", err
	}
	var seen []string
	for _, name := range []string{"gvisor", "runc"} {
		run := func(bytes string) (answerOf, error) {
			return call(ctx, "cofferdam", "run", "--engine", name, "--policy", policy, "--", "python3", "-c", "x = b'x' * ("+bytes+"); print(len(x))")
		}
		less, err := run("1 << 20")
		if err != nil || less.code != 0 || less.out != "1048576" {
			return "", errors.Join(fmt.Errorf("INCONCLUSIVE: %s: a mebibyte: %+v", name, less), err)
		}
		more, err := run("1 << 30")
		if err != nil || more.code != 137 || !strings.Contains(more.err, "out of memory (max_memory_mb in the policy)") {
			return "", errors.Join(fmt.Errorf("%s: a gibibyte in 192 MiB: %+v", name, more), err)
		}
		if left := sandboxGroups(); len(left) > 0 {
			return "", fmt.Errorf("it left %v", left)
		}
		seen = append(seen, name+": exit code 137, and why")
	}
	return strings.Join(seen, "; ") + "; a container lives on", outlived(ctx, policy)
}

// outlived: in a container the one process is killed that used too much.
func outlived(ctx context.Context, policy string) error {
	b, err := create(ctx, "--engine", "runc", "--policy", policy)
	if err != nil {
		return err
	}
	more, err := call(ctx, "cofferdam", "exec", b.id, "--", "python3", "-c", "x = b'x' * (1 << 30)")
	if err != nil || more.code != 137 {
		return errors.Join(fmt.Errorf("INCONCLUSIVE: a gibibyte in 192 MiB: %+v", more), err)
	}
	if _, err := b.sh(ctx, "echo alive"); err != nil {
		return fmt.Errorf("after one process was killed: %w", err)
	}
	return b.remove(ctx)
}

// begin makes a sandbox with a file and a process.
func begin(ctx context.Context) (box, error) {
	b, err := create(ctx, "--engine", "gvisor")
	if err != nil {
		return b, err
	}
	_, err = b.sh(ctx, "echo kept >~/f; sleep 1000000 >/dev/null 2>&1 & echo $! >~/pid")
	return b, err
}

// checkGoesOn returns an error unless file and process are there.
func (b box) checkGoesOn(ctx context.Context) error {
	said, err := b.sh(ctx, "cat ~/f && kill -0 $(cat ~/pid) && echo alive")
	if err == nil && said != "kept\nalive" {
		err = fmt.Errorf("inside of %s is %q", b.id, said)
	}
	return err
}

// pause: on disk a sandbox has no process, its group keeps its limits for it, and resumed it
// goes on in that.
func pause(ctx context.Context) (string, error) {
	b, err := begin(ctx)
	if err != nil {
		return "", err
	}
	if err := b.checkGoesOn(ctx); err != nil {
		return "", fmt.Errorf("INCONCLUSIVE: before the pause: %w", err)
	}
	if _, err := must(ctx, "cofferdam", "pause", b.id); err != nil {
		return "", err
	}
	if state, err := b.state(ctx); err != nil || state != "paused" {
		return "", errors.Join(fmt.Errorf("it is %q", state), err)
	}
	if group, pids, err := members(b.id); err == nil {
		return "", fmt.Errorf("a paused sandbox has the processes %s in %s", pids, group)
	}
	if _, err := must(ctx, "cofferdam", "resume", b.id); err != nil {
		return "", err
	}
	if err := b.checkGoesOn(ctx); err != nil {
		return "", err
	}
	group, _, err := members(b.id)
	if err != nil {
		return "", fmt.Errorf("resumed: %w", err)
	}
	if limit, err := read(filepath.Join(group, "memory.max")); err != nil || limit == "max" {
		return "", errors.Join(fmt.Errorf("resumed, %s has the memory limit %q", group, limit), err)
	}
	return "file and process went on, within limits; on disk it had no process", b.remove(ctx)
}

// snapshot: a sandbox from a snapshot and a fork go on with files and processes, each in a
// group of its own, and the source is untouched.
func snapshot(ctx context.Context) (string, error) {
	source, err := begin(ctx)
	if err != nil {
		return "", err
	}
	if _, err := must(ctx, "cofferdam", "snapshot", "--name", "warm", source.id); err != nil {
		return "", err
	}
	copied, err := create(ctx, "--snapshot", "warm")
	if err != nil {
		return "", err
	}
	forked, err := must(ctx, "cofferdam", "fork", source.id)
	if err != nil {
		return "", err
	}
	seen := map[string]bool{}
	for _, b := range []box{source, copied, {id: forked}} {
		if err := b.checkGoesOn(ctx); err != nil {
			return "", err
		}
		group, _, err := members(b.id)
		if err != nil {
			return "", err
		}
		if limit, err := read(filepath.Join(group, "memory.max")); err != nil || limit == "max" || seen[group] {
			return "", errors.Join(fmt.Errorf("%s has the memory limit %q", group, limit), err)
		}
		seen[group] = true
		if err := b.remove(ctx); err != nil {
			return "", err
		}
	}
	_, err = must(ctx, "cofferdam", "snapshots", "rm", "warm")
	return "the source, a sandbox of its snapshot and a fork have the file and the process, and a limited group each", err
}
