package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/client"
)

// ended is why a run ends before its command does.
type ended struct {
	signal syscall.Signal
	how    string
}

func (e *ended) Error() string { return fmt.Sprintf("the sandbox was ended by %s", e.how) }

// watchSignals handles the process's signals until the returned function is
// called. Until a command is asked for every ending signal ends the run; then
// those of the keyboard are the command's.
func (r *runner) watchSignals(ctx context.Context) (stop func()) {
	signals := make(chan os.Signal, 16)
	// SIGPIPE is asked for so that a write to a closed stdout fails instead of
	// killing this process with the sandbox left behind.
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGWINCH, syscall.SIGPIPE)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case got := <-signals:
				r.signalled(ctx, got)
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(quit)
		<-done
	}
}

func (r *runner) signalled(ctx context.Context, got os.Signal) {
	sig, ok := got.(syscall.Signal)
	phase := r.phase.Load()
	switch {
	case !ok || sig == syscall.SIGPIPE:
	case sig == syscall.SIGWINCH:
		r.resize(ctx)
	case phase == phaseFarewell:
		r.hurry()
	case phase == phaseCommand && (sig == syscall.SIGINT || sig == syscall.SIGHUP) && r.detach():
	case phase == phaseCommand && sig == syscall.SIGINT:
		r.forward(ctx, "INT")
		r.judgePress(ctx)
	case phase == phaseCommand && sig == syscall.SIGQUIT:
		r.forward(ctx, "QUIT")
	default:
		r.endBy(ctx, &ended{signal: sig, how: unix.SignalName(sig)})
	}
}

// forward hands a signal of the keyboard to the command. It does not wait: the
// connection may be full of input that the command does not read.
func (r *runner) forward(ctx context.Context, name string) {
	go func() {
		_ = r.session.send(ctx, func(link *client.Attachment) error { return link.Signal(name) })
	}()
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
	end := func() { r.endBy(ctx, &ended{signal: syscall.SIGINT, how: "a second Ctrl-C"}) }
	switch r.presses.press(time.Now()) {
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

// endBy ends the run; whoever ends it again does not want to wait for the
// farewell either.
func (r *runner) endBy(ctx context.Context, why *ended) {
	if ctx.Err() != nil {
		r.hurry()
		return
	}
	r.end(why)
}

func (r *runner) resize(ctx context.Context) {
	if r.phase.Load() != phaseCommand || r.tty == nil {
		return
	}
	go func() {
		_ = r.session.send(ctx, func(link *client.Attachment) error {
			rows, cols := r.tty.size() // asked last, so that the last one sent is the newest
			return link.Resize(rows, cols)
		})
	}()
}
