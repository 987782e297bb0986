package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/process"
)

// track hands the sentry and the gofer to the keeper.
func (e *Engine) track(ctx context.Context, id string) error {
	processes, err := e.processes(id)
	if err != nil {
		return err
	}
	return e.keeper.Track(ctx, id, processes)
}

// processes reads the sentry's and the gofer's numbers from runsc's record, and
// looks who has them. One that is over comes without a start.
func (e *Engine) processes(id string) ([]process.ID, error) {
	data, err := os.ReadFile(e.record(id) + ".state")
	if err != nil {
		return nil, fmt.Errorf("runsc left no record of sandbox %s: %w", id, err)
	}
	var record struct {
		Sandbox struct {
			Pid int `json:"pid"`
		} `json:"sandbox"`
		Gofer int `json:"goferPid"`
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return nil, fmt.Errorf("runsc's record of sandbox %s: %w", id, err)
	}
	if !process.Ordinary(record.Sandbox.Pid) || !process.Ordinary(record.Gofer) {
		return nil, fmt.Errorf("runsc's record of sandbox %s names no processes", id)
	}
	return []process.ID{e.found(record.Sandbox.Pid, id), e.found(record.Gofer, id)}, nil
}

// found is the process that has a number, if it is runsc's for this sandbox.
func (e *Engine) found(pid int, id string) process.ID {
	now, err := process.Of(pid)
	if err != nil || !e.serves(now, e.dir(id)) || !now.Is() {
		return process.ID{Pid: pid}
	}
	return now
}

// serves tells whether a process is runsc's for a bundle: runsc is what it runs, and
// the bundle is an argument of it. A process that is dead has neither.
func (e *Engine) serves(p process.ID, dir string) bool { return names(p.Pid, dir) && e.isRunsc(p.Pid) }

// names tells whether a process has the bundle as an argument.
func names(pid int, dir string) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	for arg := range strings.SplitSeq(string(data), "\x00") {
		if arg == dir || arg == "--bundle="+dir {
			return true
		}
	}
	return false
}

// isRunsc tells whether a process runs runsc, also one that has been replaced since,
// whose name is all that is left to go by.
func (e *Engine) isRunsc(pid int) bool {
	exe := filepath.Join("/proc", strconv.Itoa(pid), "exe")
	runs, err := os.Stat(exe)
	if err != nil {
		return false
	}
	if own, err := os.Stat(e.cfg.Runsc); err == nil && os.SameFile(own, runs) {
		return true
	}
	path, err := os.Readlink(exe)
	return err == nil && filepath.Base(strings.TrimSuffix(path, " (deleted)")) == filepath.Base(e.cfg.Runsc)
}

// ours tells whether a process is one that a start of this engine left: it serves the
// bundle, and nobody else began it. The keeper gives each start a session of its own,
// so that its leader is such a process too, or gone; what somebody runs at a terminal
// or in a script is of a session that another program leads. Parents tell less: what
// outlives its keeper gets another.
func (e *Engine) ours(p process.Stat, table map[int]process.Stat, dir string) bool {
	if p.Pid == os.Getpid() || p.Dead || !e.serves(p.ID, dir) {
		return false
	}
	leader, there := table[p.Session]
	return !there || leader.Dead || leader.ID == p.ID || e.serves(leader.ID, dir)
}

// killNaming kills this engine's processes for a bundle, which may be anyone's children,
// and waits until they have ended.
func (e *Engine) killNaming(ctx context.Context, dir string) error {
	table, err := process.Table()
	if err != nil {
		return err
	}
	var errs []error
	var held []process.Handle
	defer func() {
		for _, h := range held {
			h.Close()
		}
	}()
	for _, p := range table {
		if !e.ours(p, table, dir) {
			continue
		}
		handle, err := process.Open(p.ID)
		if errors.Is(err, process.ErrOver) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("process %v: %w", p.ID, err))
			continue
		}
		held = append(held, handle)
		if err := handle.Signal(unix.SIGKILL); err != nil && !errors.Is(err, process.ErrOver) {
			errs = append(errs, fmt.Errorf("kill process %v: %w", p.ID, err))
		}
	}
	for _, handle := range held {
		if err := handle.Await(ctx); err != nil {
			errs = append(errs, fmt.Errorf("a killed process did not end: %w", err))
		}
	}
	return errors.Join(errs...)
}
