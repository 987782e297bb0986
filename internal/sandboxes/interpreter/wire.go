package interpreter

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// wire is a connection with a kernel's frames. It ends with its context.
type wire struct {
	raw  net.Conn
	conn *channel.Conn
	stop func() bool
}

func openWire(ctx context.Context, host Starter, kernel string, offset int64) (*wire, error) {
	raw, err := host.Attach(ctx, kernel, offset)
	if err != nil {
		return nil, err
	}
	return &wire{raw: raw, conn: channel.NewConn(raw), stop: safego.When(ctx, func() { _ = raw.Close() })}, nil
}

func (w *wire) closeWire() {
	w.stop()
	_ = w.raw.Close()
}

// writeInput writes input for the kernel. One that does not take it holds nobody up for ever.
func (w *wire) writeInput(data []byte) error {
	if err := w.raw.SetWriteDeadline(time.Now().Add(takeTimeout)); err != nil {
		return err
	}
	for chunk := range slices.Chunk(data, channel.MaxPayload) {
		if err := w.conn.WriteFrame(channel.FrameStdin, chunk); err != nil {
			return err
		}
	}
	return nil
}

// sendRequest sends a request.
func (w *wire) sendRequest(r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fault.Invalid("the cell is no text: %s", text.Shorten(err.Error(), 200))
	}
	return w.writeInput(append(line, '\n'))
}

// interrupt has a kernel end its cell: by a signal to its process group, which waits behind
// nothing, and by a request for one that hears no signals. It returns soon.
func (w *wire) interrupt(host Starter, kernel string) {
	safego.Go(func() { // ends with the time for it
		ctx, cancel := context.WithTimeout(context.Background(), interruptGrace)
		defer cancel()
		_ = host.Signal(ctx, kernel, "INT") // a kernel that does not end its cell is ended
		_ = w.sendRequest(request{Op: "interrupt"})
	})
}

// programOf is a kernel's program as what starts it reads it.
func programOf(l language) []byte {
	return append([]byte(strconv.Itoa(len(l.program))+"\n"), l.program...)
}

// notStarted says why a kernel ended before it was ready.
func notStarted(l language, payload, complaint []byte) error {
	var exit channel.Exit
	_ = channel.DecodeJSON(channel.FrameExit, payload, &exit) // what can't be read tells nothing
	if exit.Code == 126 && exit.Error != "" {                 // a directory in which nothing can begin
		return fault.Invalid("%s", printable(exit.Error, maxError))
	}
	why := printable(string(bytes.TrimSpace(complaint)), maxError)
	if why == "" {
		why = printable(exit.Error, maxError)
	}
	if exit.Code == 127 || strings.Contains(exit.Error, "not found") {
		return fault.New(fault.ErrUnavailable, "the sandbox has no program for the language %s: create it from the template code-interpreter (%s)", l.name, why)
	}
	return fault.New(fault.ErrUnavailable, "the kernel for %s ended with %d before it was ready: %s", l.name, exit.Code, why)
}

// causeOf is what ended a read: its context, or what the read says.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// printable is a guest's sentence on one line.
func printable(content string, most int) string {
	content = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text.Shorten(content, most))
	return strings.TrimSpace(content)
}
