package interpreter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// takeFrame takes one of the kernel's frames; not nil: why the cell can't go on.
func (r *run) takeFrame(f kernelFrame) *Failure {
	if f.err != nil {
		return r.lostFailure(f.err)
	}
	switch f.kind {
	case channel.FrameStdout:
		return r.spoken(f.payload)
	case channel.FrameStderr: // past the kernel: of programs that it started, and of itself
		if !r.begun || len(f.payload) == 0 {
			return nil
		}
		r.err += int64(len(f.payload))
		return r.takeOutput(Event{Stderr: strings.ToValidUTF8(string(f.payload), "\uFFFD")}, len(f.payload))
	case channel.FrameGap:
		r.in.dropLine()
		r.tellEvent(Event{Stderr: "[cofferdam: some of the output was not kept]\n"})
	case channel.FrameExit:
		var exit channel.Exit
		if channel.DecodeJSON(f.kind, f.payload, &exit) != nil {
			exit.Code = -1
		}
		return r.diedFailure(exit)
	case channel.FrameStarted, channel.FrameOpen, channel.FrameReply, channel.FrameStdin, channel.FrameResize, channel.FrameSignal, channel.FrameEvent:
	}
	return nil
}

// lostFailure is the end of a connection that had no end of its own.
func (r *run) lostFailure(err error) *Failure {
	why := "the kernel's output broke off"
	if !errors.Is(err, io.EOF) {
		why += ": " + printable(err.Error(), maxError)
	}
	return &Failure{Name: FailureDied, Value: why}
}

// diedFailure is the end of the kernel.
func (r *run) diedFailure(exit channel.Exit) *Failure {
	why := fmt.Sprintf("exit code %d", exit.Code)
	if exit.Signal != "" {
		why = "signal " + printable(exit.Signal, 32)
	}
	if exit.Error != "" {
		why += ", " + printable(exit.Error, maxError)
	}
	return &Failure{Name: FailureDied, Value: "the kernel ended (" + why + "), and what the context had is lost; the next cell gets a new one"}
}

// spoken takes what the kernel wrote: lines of messages.
func (r *run) spoken(data []byte) *Failure {
	var why *Failure
	errWhy := errors.New("see why")
	err := r.in.feedBytes(data, func(line []byte) error {
		if why = r.takeLine(line); why != nil && why.Name != FailureOutput {
			return errWhy
		}
		return nil
	})
	switch {
	case err == nil || errors.Is(err, errWhy):
		return why
	case r.isLeft(): // nobody reads it
		r.in.dropLine()
		return nil
	case errors.Is(err, fault.ErrExhausted):
		return &Failure{Name: FailureBroken, Value: printable(err.Error(), maxError) + "; the kernel was ended"}
	}
	if !r.begun { // what an earlier cell left behind
		r.in.dropLine()
		return nil
	}
	return &Failure{Name: FailureBroken, Value: printable(err.Error(), maxError) + fmt.Sprintf(" (more than %d bytes); the kernel was ended", maxLine)}
}

func (r *run) isLeft() bool {
	select {
	case <-r.left:
		return true
	default:
		return false
	}
}

// takeLine takes one message. Before the one that begins the cell all is what earlier ones left.
func (r *run) takeLine(line []byte) *Failure {
	m, err := parseLine(line)
	if err == nil && m.Kind == "begin" && m.Cell == r.id {
		r.begun = true
		return nil
	}
	switch {
	case !r.begun || r.done:
		return nil
	case err != nil:
		return &Failure{Name: FailureBroken, Value: printable(err.Error(), maxError) + "; the kernel was ended, and what the context had is lost"}
	case m.Cell != r.id:
		return nil
	}
	return r.message(m, len(line))
}

// message takes one of the cell's.
func (r *run) message(m kernelMessage, size int) *Failure {
	switch m.Kind {
	case "stdout":
		r.out += int64(len(m.Text))
		return r.takeOutput(Event{Stdout: m.Text}, size)
	case "stderr":
		r.err += int64(len(m.Text))
		return r.takeOutput(Event{Stderr: m.Text}, size)
	case "result":
		if result := m.result(); result != nil {
			return r.takeOutput(Event{Result: result}, size)
		}
	case "error":
		why := &Failure{Name: text.Shorten(m.Name, maxError), Value: text.Shorten(m.Value, maxValue), Traceback: text.Shorten(m.Traceback, maxTrace)}
		if r.failure == nil { // else the host has told why already, or will
			r.failure = why
		}
		r.dying = r.dying || m.Name == FailureDied
	case "done":
		r.done = true
		if r.dying { // the next cell must not get it
			if err := r.place.killKernel(context.Background(), r.host, r.kernel); err != nil && r.failure == nil {
				r.failure = &Failure{Name: FailureDied, Value: fault.Sentence(err, "its kernel was killed, and nobody confirmed that")}
			}
		}
		if r.failure != nil {
			r.tellEvent(Event{Error: r.failure})
		}
		count := max(m.Count, 0)
		r.tellEvent(Event{Count: &count})
	}
	return nil
}

// takeOutput hands on what counts as output; FailureOutput once there is too much of it.
func (r *run) takeOutput(e Event, size int) *Failure {
	if r.bytes += size; r.bytes > r.most {
		return &Failure{Name: FailureOutput, Value: fmt.Sprintf("the cell wrote more than %d MiB, and was interrupted; write to a file what is longer", r.most>>20)}
	}
	r.tellEvent(e)
	return nil
}
