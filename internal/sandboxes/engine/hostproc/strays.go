package hostproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// Strays are the processes of an engine's programs that have an instance's folder as an
// argument, and may be anyone's children.
type Strays struct {
	Dir string
	// Runs tells whether a process runs a program of the engine.
	Runs func(pid int) bool
}

// Runs tells whether a process runs a program, also one that has been replaced since,
// whose name is all that is left to go by.
func Runs(pid int, program string) bool {
	exe := filepath.Join("/proc", strconv.Itoa(pid), "exe")
	runs, err := os.Stat(exe)
	if err != nil {
		return false
	}
	if own, err := os.Stat(program); err == nil && os.SameFile(own, runs) {
		return true
	}
	path, err := os.Readlink(exe)
	return err == nil && filepath.Base(strings.TrimSuffix(path, " (deleted)")) == filepath.Base(program)
}

// RunsStage tells whether a process runs the program that an engine's stage is, by its argv,
// or this binary, which was the program of an earlier start and may be again.
func RunsStage(pid int, stage []string) bool {
	self, err := os.Executable()
	return err == nil && Runs(pid, self) || len(stage) > 0 && Runs(pid, stage[0])
}

// Serves tells whether a process is one: a program of the engine is what it runs, and the
// folder is an argument of it. A process that is dead has neither.
func (s Strays) Serves(p process.ID) bool { return s.isNamed(p.Pid) && s.Runs(p.Pid) }

// isNamed tells whether a process has the folder as an argument.
func (s Strays) isNamed(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	for arg := range strings.SplitSeq(string(data), "\x00") {
		if arg == s.Dir || arg == "--bundle="+s.Dir {
			return true
		}
	}
	return false
}

// isOurs tells whether a process is one that a start of this engine left: it serves the
// folder, and nobody else began it. The keeper gives each start a session of its own,
// so that its leader is such a process too, or gone; what somebody runs at a terminal
// or in a script is of a session that another program leads. Parents tell less: what
// outlives its keeper gets another.
func (s Strays) isOurs(p process.Stat, table map[int]process.Stat) bool {
	if p.Pid == os.Getpid() || p.Dead || !s.Serves(p.ID) {
		return false
	}
	leader, there := table[p.Session]
	return !there || leader.Dead || leader.ID == p.ID || s.Serves(leader.ID)
}

// Kill kills those that a start left, and waits until they have ended.
func (s Strays) Kill(ctx context.Context) error {
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
		if !s.isOurs(p, table) {
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
