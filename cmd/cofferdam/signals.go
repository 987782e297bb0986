package main

import (
	"context"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signalled handles a signal of this process. Until a command is asked for every ending
// signal ends the run; then those of the keyboard are the command's.
func (r *runner) signalled(ctx context.Context, sig syscall.Signal) {
	phase := r.phase.Load()
	switch {
	case sig == syscall.SIGWINCH && phase == phaseCommand:
		r.resize(ctx)
	case sig == syscall.SIGWINCH:
	case phase == phaseFarewell:
		r.hurry()
	case phase == phaseCommand && (sig == syscall.SIGINT || sig == syscall.SIGHUP) && r.detach():
	case phase == phaseCommand && sig == syscall.SIGINT:
		r.sendSignal(ctx, "INT")
		r.judgePress(ctx)
	case phase == phaseCommand && sig == syscall.SIGQUIT:
		r.sendSignal(ctx, "QUIT")
	default:
		r.endRun(ctx, &ended{signal: sig, how: unix.SignalName(sig)})
	}
}

// pressed looks for Ctrl-C in what a terminal in raw mode sends, and returns what
// is the command's of it: not the Ctrl-C that leaves a run that waits.
func (r *runner) pressed(ctx context.Context, p []byte) []byte {
	if r.tty == nil {
		return p
	}
	for i, key := range p {
		if key != 0x03 {
			continue
		}
		if r.detach() {
			return p[:i]
		}
		r.judgePress(ctx)
	}
	return p
}

func (r *runner) judgePress(ctx context.Context) {
	end := func() { r.endRun(ctx, &ended{signal: syscall.SIGINT, how: "a second Ctrl-C"}) }
	switch r.presses.noteInterrupt(time.Now()) {
	case forCommand:
	case forSandbox:
		end()
	case doubtful:
		time.AfterFunc(interruptGrace, func() {
			if r.presses.unanswered() {
				end()
			}
		})
	}
}

// endRun ends the run; whoever ends it again does not want to wait for the
// farewell either.
func (r *runner) endRun(ctx context.Context, why *ended) {
	if ctx.Err() != nil {
		r.hurry()
		return
	}
	r.end(why)
}
