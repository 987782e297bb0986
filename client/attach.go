package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/cofferdam-dev/cofferdam/api"
)

// attachProtocol is what the connection is upgraded to.
const attachProtocol = "cofferdam-frames"

// Event is one thing that a command said. Exactly one field is set. Stdout and
// Stderr are valid until the next event.
type Event struct {
	Stdout []byte
	Stderr []byte
	Gap    int64     // so many bytes of output were not kept
	Exit   *api.Exit // the command ended; the last event
}

// Attachment is a connection to one command. Events is for one goroutine; the
// other methods are safe for concurrent use beside it.
type Attachment struct {
	conn   net.Conn
	frames *bufio.Reader
	offset int64       // owned by the goroutine that ranges over Events
	forget func() bool // ends the watch over Attach's context

	write sync.Mutex // guards writes to conn: one frame at a time
}

// Attach connects to a command's output from offset on (0: from the start, as
// far as it is kept). Ending ctx afterwards closes the attachment; the command
// runs on. Status 404: the sandbox or the command is gone.
func (c *Client) Attach(ctx context.Context, sandbox, command string, offset int64) (*Attachment, error) {
	path := commandPath(sandbox, command) + "/attach?offset=" + strconv.FormatInt(offset, 10)
	req, err := c.newRequest(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	conn, frames, stop, err := c.upgraded(ctx, req, attachProtocol)
	if err != nil {
		return nil, err
	}
	return &Attachment{conn: conn, frames: frames, offset: offset, forget: stop}, nil
}

// upgraded makes a connection of a request. It ends with ctx, until stop is called.
func (c *Client) upgraded(ctx context.Context, req *http.Request, protocol string) (net.Conn, *bufio.Reader, func() bool, error) {
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	in, err := upgrade(conn, req, protocol)
	if err != nil {
		stop()
		return nil, nil, nil, errors.Join(err, conn.Close())
	}
	return conn, in, stop, nil
}

func upgrade(conn net.Conn, req *http.Request, protocol string) (*bufio.Reader, error) {
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	frames := bufio.NewReaderSize(conn, headerSize+maxPayload)
	resp, err := http.ReadResponse(frames, req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLost, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, problem(resp)
	}
	if got := resp.Header.Get("Upgrade"); got != protocol {
		return nil, fmt.Errorf("the daemon speaks %q on this connection; this client speaks %q", got, protocol)
	}
	return frames, nil
}

// Offset is the output position up to which events were yielded. Ask between
// events or after the last one.
func (a *Attachment) Offset() int64 { return a.offset }

// Events yields what the command says until its exit. If the connection ends
// before, the last pair has an error that is ErrLost.
func (a *Attachment) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		buf := make([]byte, maxPayload)
		for {
			kind, payload, err := readFrame(a.frames, buf)
			if err != nil {
				yield(Event{}, err)
				return
			}
			event, known, err := a.decode(kind, payload)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if known && (!yield(event, nil) || event.Exit != nil) {
				return
			}
		}
	}
}

// decode passes over kinds that it does not know: a newer daemon may have more.
func (a *Attachment) decode(kind byte, payload []byte) (event Event, known bool, err error) {
	switch kind {
	case frameStdout:
		a.offset += int64(len(payload))
		return Event{Stdout: payload}, true, nil
	case frameStderr:
		a.offset += int64(len(payload))
		return Event{Stderr: payload}, true, nil
	case frameGap:
		var g gap
		if err := json.Unmarshal(payload, &g); err != nil || g.Bytes < 0 {
			return Event{}, false, fmt.Errorf("the daemon sent a gap that can't be read: %q", payload)
		}
		a.offset += g.Bytes
		return Event{Gap: g.Bytes}, g.Bytes > 0, nil
	case frameExit:
		exit := api.Exit{}
		if err := json.Unmarshal(payload, &exit); err != nil {
			return Event{}, false, fmt.Errorf("the daemon sent an exit that can't be read: %q", payload)
		}
		return Event{Exit: &exit}, true, nil
	}
	return Event{}, false, nil
}

// Write sends input to the command. An error means that p did not arrive
// whole; that it did arrive is not guaranteed by nil (the daemon may be killed
// with it in its hands).
func (a *Attachment) Write(p []byte) (int, error) {
	sent := 0
	for len(p) > 0 {
		n := min(len(p), maxPayload)
		if err := a.frame(frameStdin, p[:n]); err != nil {
			return sent, err
		}
		sent += n
		p = p[n:]
	}
	return sent, nil
}

// CloseInput ends the command's input.
func (a *Attachment) CloseInput() error { return a.frame(frameStdin, nil) }

// Resize tells the command's terminal its new size.
func (a *Attachment) Resize(rows, cols uint16) error {
	return a.message(frameResize, window{Rows: rows, Cols: cols})
}

// Signal sends a signal ("INT", "TERM", ...) to the command's process group, behind the input
// that was written before, and hears of no answer: see SignalCommand.
func (a *Attachment) Signal(name string) error {
	return a.message(frameSignal, signal{Name: name})
}

// Close drops the connection; the command runs on.
func (a *Attachment) Close() error {
	a.forget()
	return a.conn.Close()
}

func (a *Attachment) message(kind byte, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a frame: %w", err)
	}
	return a.frame(kind, data)
}

func (a *Attachment) frame(kind byte, payload []byte) error {
	a.write.Lock()
	defer a.write.Unlock()
	if err := writeFrame(a.conn, kind, payload); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	return nil
}
