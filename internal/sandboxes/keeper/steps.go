package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// runSteps runs the programs; after a failure those that take it back, all of
// them.
func (s *Server) runSteps(box *sandbox, f *Freeze) error {
	log, err := openLog(f.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	before, _ := log.Seek(0, 2)
	for _, argv := range f.Steps {
		err := s.runStep(box, f, argv, log)
		if err == nil {
			continue
		}
		output := readLogTail(f.Log, before)
		for _, argv := range f.Undo {
			if undone := s.runUndo(box, f, argv, log); undone != nil && !box.isOver() {
				s.log.Warn("a freeze could not be taken back", slog.String("sandbox", box.id), slog.Any("error", undone))
			}
		}
		return fault.Wrap(fault.ErrUnavailable, err, "sandbox %s could not be frozen%s", box.id, output)
	}
	return nil
}

// runStep runs one program to its end. A kill of the sandbox ends it, too.
func (s *Server) runStep(box *sandbox, f *Freeze, argv []string, log *os.File) error {
	box.mu.Lock()
	killed := box.killed
	box.mu.Unlock()
	if killed {
		return errors.New("it was killed")
	}
	p, err := s.beginStep(box, f, argv, log)
	if err != nil {
		return err
	}
	box.mu.Lock()
	box.starter = p
	killed = box.killed
	box.mu.Unlock()
	if killed {
		_ = s.reaper.signalChild(p, syscall.SIGKILL, true)
	}
	return s.endStep(p, argv, stepTimeout)
}

// runUndo runs a program that takes others back, which no kill ends.
func (s *Server) runUndo(box *sandbox, f *Freeze, argv []string, log *os.File) error {
	p, err := s.beginStep(box, f, argv, log)
	if err != nil {
		return err
	}
	return s.endStep(p, argv, undoTimeout)
}

func (s *Server) beginStep(box *sandbox, f *Freeze, argv []string, log *os.File) (*child, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return s.reaper.startChild(box.id, argv, &syscall.ProcAttr{
		Dir: f.Dir, Env: f.Env, Files: []uintptr{null.Fd(), log.Fd(), log.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// endStep waits for a program's end, which comes after the longest that it may take if not by
// itself.
func (s *Server) endStep(p *child, argv []string, longest time.Duration) error {
	overdue := safego.After(longest, func() { _ = s.reaper.signalChild(p, syscall.SIGKILL, true) })
	defer overdue.Stop()
	<-p.done
	if p.exit.Code != 0 {
		return fmt.Errorf("%s ended with %d", filepath.Base(argv[0]), p.exit.Code)
	}
	return nil
}

// killTracked ends the sandbox's processes and waits until they are reaped.
func (s *sandbox) killTracked(ctx context.Context) error {
	s.mu.Lock()
	tracked := slices.Clone(s.tracked)
	s.mu.Unlock()
	for _, p := range tracked {
		if err := s.reaper.signalChild(p, syscall.SIGKILL, false); err != nil {
			return err
		}
	}
	return awaitEnd(ctx, s.id, tracked)
}
