package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Sink takes the bytes of a file or a page. Its Write refuses more than there
// may be.
type Sink interface {
	io.Writer
	// Reset throws away what was written: another attempt begins.
	Reset() error
}

// Memory is a Sink in memory, for answers that are small. The zero value is
// empty.
type Memory struct{ data []byte }

// Write implements io.Writer.
func (m *Memory) Write(p []byte) (int, error) {
	m.data = append(m.data, p...)
	return len(p), nil
}

// Reset implements Sink.
func (m *Memory) Reset() error {
	m.data = m.data[:0]
	return nil
}

// Bytes are what was written. They are valid until the next Reset.
func (m *Memory) Bytes() []byte { return m.data }

// FileAsk asks for a file's bytes.
type FileAsk struct {
	URL  string
	Size int64 // what the index says; 0: nothing
	// Known tells that the caller can tell by a digest whether the bytes are whole.
	Known bool
	// Subject is for the record that the question leaves.
	Subject Subject
}

// File fetches a file into a sink, as it is: neither packed nor in part. The caller verifies the
// bytes. One that has the upstream's credential in it is refused.
func (c *Client) File(ctx context.Context, ask FileAsk, sink Sink) error {
	return c.retryAttempts(ctx, upstreamQuestion{location: ask.URL, about: ask.Subject}, func(ctx context.Context, at *hop) error {
		if err := sink.Reset(); err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		return c.oneFile(ctx, cancel, at, ask, sink)
	})
}

func (c *Client) oneFile(ctx context.Context, cancel context.CancelCauseFunc, at *hop, ask FileAsk, sink Sink) error {
	resp, err := c.getURL(ctx, at, ask.URL, http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := status(resp); err != nil {
		return err
	}
	if e := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ",")); e != "" && e != "identity" {
		return fault.Invalid("the upstream packs a file that was asked for as it is")
	}
	if ask.Size > 0 && resp.ContentLength >= 0 && resp.ContentLength != ask.Size {
		return fault.Invalid("the upstream sends another number of bytes than its index says")
	}
	if !ask.Known && ask.Size == 0 {
		if err := delimited(resp); err != nil {
			return err
		}
	}
	body, stop := paceBody(resp.Body, c.limits.PaceWindow, c.limits.PaceBytes, cancel)
	defer stop()
	to := c.receiveBody(resp, sink, true)
	n, err := io.Copy(to, body)
	if err == nil {
		err = to.endBody()
	}
	if refused, ok := errors.AsType[*sinkError](err); ok {
		return refused.err
	}
	if err != nil {
		return bodyFault(ctx, err)
	}
	if ask.Size > 0 && n != ask.Size {
		return fault.Invalid("the upstream sends another number of bytes than its index says")
	}
	return nil
}

// sinkError tells the sink's own errors from the network's.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }
