package interpreter

import (
	"context"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

func (p *kernelContext) isFound() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

func (p *kernelContext) setSettled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = false
}

// settleKernel has a kernel that was found again end the cell that it may still run, which another
// daemon gave it and whose end is on record: cells of one context never run side by side. A
// cell that does not end soon by itself is interrupted. idle false: that came to nothing, or the
// kernel has ended. The error is that ctx ended first.
func (w *wire) settleKernel(ctx context.Context, host Starter, kernel string) (idle bool, err error) {
	if w.sendRequest(request{Op: "idle"}) != nil {
		return false, nil
	}
	ready := make(chan bool, 1)
	safego.Go(func() { ready <- w.awaitReady() }) // ends with the wire at the latest
	wait := time.NewTimer(idleTime)
	defer wait.Stop()
	for interrupted := false; ; interrupted = true {
		select {
		case idle := <-ready:
			return idle, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-wait.C:
		}
		if interrupted {
			return false, nil
		}
		w.interrupt(host, kernel)
		wait.Reset(interruptGrace)
	}
}

// awaitReady reads until the kernel says that it does nothing; false: it has ended. All else
// that it says is of a cell that nobody reads any more.
func (w *wire) awaitReady() bool {
	in := lineBuffer{}
	for {
		kind, payload, err := w.conn.ReadFrame()
		if err != nil || kind == channel.FrameExit {
			return false
		}
		ready := false
		switch kind { //nolint:exhaustive // the others say nothing here
		case channel.FrameGap:
			in.dropLine()
		case channel.FrameStdout:
			err = in.feedBytes(payload, func(line []byte) error {
				m, err := parseLine(line)
				ready = ready || err == nil && m.Kind == "ready"
				return nil
			})
		}
		if err != nil { // a line that is too long
			in.dropLine()
		}
		if ready {
			return true
		}
	}
}
