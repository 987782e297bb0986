package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cofferdam-dev/cofferdam/api"
)

// The part size.
const (
	sizeBoxes  = 20 // sandboxes over which a share of the host is measured
	sizeRounds = 40 // commands beside those that compute
	sizeLives  = 40 // sandboxes made one after another, and then at once
	unitBytes  = "kB"
	kilobyte   = 1e3
)

// idlePython is an interpreter that has some of its library, and waits.
const idlePython = "import asyncio, ssl, sqlite3, json, email, http.client, unittest, decimal; print(1, flush=True); import time; time.sleep(3600)"

// computing is a process that takes all that it gets of a processor.
const computing = "print(1, flush=True)\nwhile True: pass"

// measureSize measures how much of a host one sandbox takes, of each engine that is there without more: docs/sizing.md
// says how many a host can have by these figures. Memory is the difference of what the whole host has available, so that
// it has the kernel's part in it, and that of daemon, keeper and gateway.
func measureSize(ctx context.Context, b *bench) error {
	for _, engine := range []string{"gvisor", containersEngine} {
		s := &sizes{engineBench: &engineBench{bench: b}, engine: engine}
		if err := s.all(ctx); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	return nil
}

// sizes measures one engine.
type sizes struct {
	*engineBench

	engine string
	boxes  []api.Sandbox
}

func (s *sizes) all(ctx context.Context) (err error) {
	box, err := s.behind(ctx, s.engine, closedPolicy)
	if err != nil {
		s.progress.line("no figures of the engine %s: %v", s.engine, err)
		return nil
	}
	if err := s.daemon.client.DestroySandbox(ctx, box.ID); err != nil { // what the first one warms up is no sandbox's
		return err
	}
	defer func() { err = errors.Join(err, s.destroyAll(context.WithoutCancel(ctx))) }()
	for _, measure := range []func(context.Context) error{s.lives, s.atRest, s.beside} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// name begins what a row says.
func (s *sizes) name(what string) string { return s.engine + ": " + what }

// lives makes and ends sandboxes: one after another, which tells the work of a life, and several at once, which tells how
// many the host makes in a second.
func (s *sizes) lives(ctx context.Context) error {
	before, err := s.logBytes()
	if err != nil {
		return err
	}
	n := s.rounds(sizeLives)
	var work sample
	for i := range n {
		s.progress.round(s.name("lives one after another"), i, n)
		spent := machineCPU()
		if err := s.life(ctx); err != nil {
			return err
		}
		work.add(machineCPU() - spent)
	}
	after, err := s.logBytes()
	if err != nil {
		return err
	}
	s.table.add(figure(s.name("CPU of create, a command, destroy"), unitTime, work))
	s.table.add(figure("  records of it in the log", unitBytes, sample{float64(after-before) / float64(n) / kilobyte}))
	s.progress.say("%s: lives at once", s.engine)
	began := time.Now()
	var all errgroup.Group
	all.SetLimit(2 * runtime.NumCPU())
	for range n {
		all.Go(func() error { return s.life(ctx) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	rate := float64(n) / time.Since(began).Seconds()
	s.table.add(figure(fmt.Sprintf("  lives a second, %d at a time", 2*runtime.NumCPU()), unitRate, sample{rate}))
	return nil
}

// life is one sandbox from its create to its end.
func (s *sizes) life(ctx context.Context) error {
	box, err := s.behind(ctx, s.engine, closedPolicy)
	if err != nil {
		return err
	}
	return errors.Join(s.command(ctx, box.ID, "/bin/true"), s.daemon.client.DestroySandbox(ctx, box.ID))
}

// atRest has sandboxes that do nothing, and then each an interpreter that waits.
func (s *sizes) atRest(ctx context.Context) error {
	// Sandboxes that have ended give some of their memory back late, and the host has work of its own.
	quiet, err := s.quietCPU(ctx)
	if err != nil {
		return err
	}
	empty, err := available()
	if err != nil {
		return err
	}
	n := s.rounds(sizeBoxes)
	for i := range n {
		s.progress.round(s.name("sandboxes at rest"), i, n)
		box, err := s.behind(ctx, s.engine, closedPolicy)
		if err != nil {
			return err
		}
		s.boxes = append(s.boxes, box)
	}
	if err := s.share(ctx, "a sandbox at rest", empty, quiet); err != nil {
		return err
	}
	disk, err := bytesBelow(filepath.Join(s.state(), "sandboxes"))
	if err != nil {
		return err
	}
	s.table.add(figure("  its files on the disk", unitBytes, sample{float64(disk) / float64(n) / kilobyte}))
	for _, box := range s.boxes {
		if err := s.start(ctx, box, idlePython); err != nil {
			return err
		}
	}
	return s.share(ctx, "  with a python that waits", empty, quiet)
}

// quietCPU is the processor time of the whole host while nothing is asked of it, over idleLook.
func (s *sizes) quietCPU(ctx context.Context) (time.Duration, error) {
	s.progress.say("%s: the host at rest", s.engine)
	spent := machineCPU()
	select {
	case <-time.After(idleLook):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return machineCPU() - spent, nil
}

// share adds what each of the sandboxes has taken of the host, and what they do in ten seconds beyond what the host did
// without them.
func (s *sizes) share(ctx context.Context, what string, empty int64, quiet time.Duration) error {
	spent, err := s.quietCPU(ctx)
	if err != nil {
		return err
	}
	spent = max(0, spent-quiet)
	now, err := available()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(what, " ") {
		what = s.name(what)
	}
	n := float64(len(s.boxes))
	s.table.add(figure(what+", of the host's memory", unitMemory, sample{float64(empty-now) / n / megabyte}))
	s.table.add(figure("  CPU of the whole host, each and second", unitTime, sample{float64(spent) / float64(time.Millisecond) / n / idleLook.Seconds()}))
	return nil
}

// beside runs commands in a sandbox of its own, alone and beside others that compute.
func (s *sizes) beside(ctx context.Context) error {
	box, err := s.behind(ctx, s.engine, closedPolicy)
	if err != nil {
		return err
	}
	s.boxes = append(s.boxes, box)
	alone, err := s.commands(ctx, box, "alone")
	if err != nil {
		return err
	}
	busy := 0
	for _, count := range []int{runtime.NumCPU(), 4 * runtime.NumCPU(), len(s.boxes) - 1} {
		for ; busy < min(count, len(s.boxes)-1); busy++ {
			if err := s.start(ctx, s.boxes[busy], computing); err != nil {
				return err
			}
		}
		crowded, err := s.commands(ctx, box, fmt.Sprintf("beside %d that compute", busy))
		if err != nil {
			return err
		}
		s.table.add(figure(s.name(fmt.Sprintf("exec /bin/true beside %d that compute", busy)), unitTime, crowded).beside("alone", alone))
	}
	return nil
}

func (s *sizes) commands(ctx context.Context, box api.Sandbox, how string) (took sample, err error) {
	n := s.rounds(sizeRounds)
	for i := range n {
		s.progress.round(s.name("commands "+how), i, n)
		began := time.Now()
		if err := s.command(ctx, box.ID, "/bin/true"); err != nil {
			return nil, err
		}
		took.add(time.Since(began))
	}
	return took, nil
}

// start has a Python program run in a sandbox, and returns once it has begun.
func (s *sizes) start(ctx context.Context, box api.Sandbox, program string) error {
	cmd, err := s.daemon.client.StartCommand(ctx, box.ID, api.StartCommand{Argv: []string{"python3", "-c", program}})
	if err != nil {
		return err
	}
	att, err := s.daemon.client.Attach(ctx, box.ID, cmd.ID, 0)
	if err != nil {
		return err
	}
	defer func() { _ = att.Close() }()
	for event, err := range att.Events() {
		switch {
		case err != nil:
			return err
		case event.Exit != nil:
			return fmt.Errorf("python ended with %d", event.Exit.Code)
		case len(event.Stdout) > 0:
			return nil
		}
	}
	return errors.New("python said nothing")
}

func (s *sizes) destroyAll(ctx context.Context) error {
	var all errgroup.Group
	for _, box := range s.boxes {
		all.Go(func() error { return s.daemon.client.DestroySandbox(ctx, box.ID) })
	}
	return all.Wait()
}

// logBytes is how long the audit log is.
func (s *sizes) logBytes() (int64, error) { return bytesBelow(filepath.Join(s.state(), "audit")) }

// bytesBelow is what the files below a directory take of their disk.
func bytesBelow(dir string) (all int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			all += stat.Blocks * 512 // files may have holes
		}
		return nil
	})
	return all, err
}

// available is how much memory the host has for programs that start now, in bytes.
func available() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(text), "MemAvailable:")
	fields := strings.Fields(after)
	if !found || len(fields) == 0 {
		return 0, errors.New("/proc/meminfo does not say what is available")
	}
	kibibytes, err := strconv.ParseInt(fields[0], 10, 64)
	return kibibytes * 1024, err
}
