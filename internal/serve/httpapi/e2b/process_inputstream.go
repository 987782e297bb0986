package e2b

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// inputEvent is a message of a client that streams input: one of the three.
type inputEvent struct {
	Start *selected `json:"start"` // the first one, and no other: which process
	Data  *struct {
		Input *processInput `json:"input"`
	} `json:"data"`
	Keepalive *struct{} `json:"keepalive"`
}

// single tells whether it is one of the three: of two the one that is not looked at would be lost.
func (e *inputEvent) single() bool {
	n := 0
	for _, given := range []bool{e.Start != nil, e.Data != nil, e.Keepalive != nil} {
		if given {
			n++
		}
	}
	return n == 1
}

// inputs are the calls that bring input to commands.
type inputs struct{ *Data }

// streamInput passes the input that a client streams to a command, in its order, until the client has no
// more. Each message is passed on before the next one is read, so that a command that takes nothing holds
// its client back, and the daemon keeps one message. The command's input stays open.
func (d inputs) streamInput(w http.ResponseWriter, r *http.Request) {
	c, served, err := d.beginStream(w, r)
	if !served {
		return
	}
	if err == nil {
		err = d.takeInput(w, c)
	}
	if err != nil && d.isGone(c.id) {
		writeGone(w, d.Data, c.id)
		return
	}
	// A read that was cut off has ended the request's context, so that the answer must not depend on it.
	w.Header().Set("Content-Type", c.codec.stream())
	s := &connectStream{w: w, codec: c.codec, control: http.NewResponseController(w), release: func() {}}
	if err == nil {
		err = s.sendMessage(struct{}{})
	}
	if err != nil {
		err = d.explainError(c, err)
	}
	s.endStream(err)
}

// takeInput reads a stream of input for as long as its client may take.
func (d inputs) takeInput(w http.ResponseWriter, c *call) error {
	timeout, err := timeoutOf(c.Request)
	if err != nil {
		return err
	}
	if err := heldError(c.box.Waits()); err != nil {
		return err
	}
	control := http.NewResponseController(w)
	ctx, stop := d.untilGone(c, timeout)
	defer stop()
	defer safego.Until(ctx, func() { // a client may have nothing to say for as long as it likes
		_ = control.SetReadDeadline(time.Now())
	})()
	c.Request = c.WithContext(ctx)
	err = d.passInput(c)
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), token.ErrOver):
		return errKeyOver()
	case ctx.Err() != nil: // rather than the read that was cut off for it
		return context.Cause(ctx)
	}
	_ = control.SetReadDeadline(time.Now().Add(inputRest)) // what it still sends is not waited for
	return err
}

// inputRest is how long a client whose input was refused may take for the rest of it.
const inputRest = time.Second

// untilGone is the context of a call that ends with its client's time, and when the sandbox is taken away.
func (d inputs) untilGone(c *call, timeout time.Duration) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(c.Context())
	late := func() {}
	if timeout > 0 {
		ctx, late = context.WithTimeout(ctx, timeout)
	}
	watched := ctx
	safego.Go(func() { // ends with the call
		if d.awaitGone(watched, c) {
			cancel(errBroken)
		}
	})
	return ctx, func() {
		late()
		cancel(nil)
	}
}

// passInput reads the messages of a stream of input, and passes each on.
func (d inputs) passInput(c *call) error {
	var to *keeper.Command
	var what launch
	for first := true; ; first = false {
		event, err := nextInput(c)
		switch {
		case errors.Is(err, io.EOF) && !first:
			return nil
		case errors.Is(err, io.EOF):
			return refuseWith(codeInvalid, "the stream has no message: the first one names the process")
		case err != nil:
			return err
		case !event.single():
			return refuseWith(codeInvalid, "a message of the stream is start, data or keepalive, one of the three")
		case first != (event.Start != nil):
			return refuseWith(codeInvalid, "the first message of the stream, and no other, names the process")
		case event.Start != nil:
			command, launched, err := d.findCommand(c, event.Start.Process, false)
			if err != nil {
				return err
			}
			to, what = &command, launched
		case event.Data != nil:
			if err := d.putInput(c, *to, what, event.Data.Input); err != nil {
				return err
			}
		}
		backend.Release(c.Context()) // nothing is kept of it
	}
}

// nextInput reads a message of a stream of input; io.EOF: the client has no more.
func nextInput(c *call) (event inputEvent, err error) {
	body := backend.Held(c.Context(), c.Body)
	var head [envelopeSize]byte
	if _, err := io.ReadFull(body, head[:1]); errors.Is(err, io.EOF) {
		return event, io.EOF
	} else if err != nil {
		return event, brokenInput(err)
	}
	if _, err := io.ReadFull(body, head[1:]); err != nil {
		return event, brokenInput(err)
	}
	payload, err := restOfEnvelope(head[0], binary.BigEndian.Uint32(head[1:]), body)
	if err != nil {
		return event, err
	}
	return event, c.decodeMessage(payload, &event)
}

// brokenInput is what is told of a stream of input that breaks off within a message.
func brokenInput(err error) error {
	if errors.Is(err, fault.ErrExhausted) {
		return err
	}
	return refuseWith(codeInvalid, "the stream of input broke off: %v", err)
}
