package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// How spans are handed to a receiver: a batch that it does not take after some
// tries is lost, and nothing waits for that but the next batch. The receiver is shown keys, in headers or in its
// URL; nothing of its answer is kept but the status' number.
const (
	sendTries    = 3
	sendTimeout  = 10 * time.Second
	sendPause    = time.Second // before another try, unless the receiver says when
	maxSendPause = 5 * time.Second
	complainOnce = time.Minute // the log is told of lost spans at most so often
)

// newExporter opens the place where spans go; nil: there is none.
func newExporter(cfg Config) (sdktrace.SpanExporter, error) {
	var (
		send func(ctx context.Context, batch []byte) error
		done func() error
	)
	switch {
	case cfg.Traces.URL != "":
		client := &http.Client{
			Timeout: sendTimeout,
			// A redirect is not followed: it would take the spans, and the headers that have a key, elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		send = func(ctx context.Context, batch []byte) error { return postBatch(ctx, client, cfg.Traces, batch) }
		done = func() error { client.CloseIdleConnections(); return nil }
	case cfg.Traces.File != "":
		file, err := os.OpenFile(cfg.Traces.File, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fault.Wrap(fault.ErrInvalid, err, "the file of traces %s can't be opened", cfg.Traces.File)
		}
		send = func(_ context.Context, batch []byte) error {
			_, err := file.Write(append(batch, '\n'))
			return err
		}
		done = file.Close
	default:
		return nil, nil //nolint:nilnil // no place is no error
	}
	return &exporter{send: send, done: done, log: cfg.Log}, nil
}

// exporter sends batches. A loss is told to the log, not to the SDK, which
// would write it to standard error by itself.
type exporter struct {
	send func(ctx context.Context, batch []byte) error
	done func() error
	log  *slog.Logger

	mu     sync.Mutex // guards what follows
	lost   int        // spans since the log was told
	warned time.Time
}

var _ sdktrace.SpanExporter = (*exporter)(nil)

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	batch, err := encode(spans)
	if err == nil {
		err = e.send(ctx, batch)
	}
	if err != nil {
		e.complain(ctx, len(spans), err)
	}
	return nil
}

func (e *exporter) complain(ctx context.Context, lost int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += lost
	if time.Since(e.warned) < complainOnce {
		return
	}
	e.log.WarnContext(ctx, "spans are lost: they can't be handed out", "spans", e.lost, "err", err)
	e.lost, e.warned = 0, time.Now()
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error { return e.done() }

// errLater: the receiver wants the batch later.
type errLater struct {
	status int
	after  time.Duration
}

func (e errLater) Error() string { return fmt.Sprintf("the receiver answers %d", e.status) }

// postBatch sends a batch, again if the receiver can't take it now.
func postBatch(ctx context.Context, client *http.Client, to Traces, batch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var err error
	for range sendTries {
		if err = postOnce(ctx, client, to, batch); err == nil {
			return nil
		}
		pause := sendPause
		if later, ok := errors.AsType[errLater](err); ok {
			pause = min(max(later.after, pause), maxSendPause)
		} else if _, answered := errors.AsType[errRefused](err); answered {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
	return err
}

// errRefused: the receiver will never take the batch.
type errRefused struct{ status int }

func (e errRefused) Error() string { return fmt.Sprintf("the receiver refuses them: %d", e.status) }

func postOnce(ctx context.Context, client *http.Client, to Traces, batch []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(batch))
	if err != nil {
		return err
	}
	for name, value := range to.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which may have a key in it
		}
		return fmt.Errorf("the receiver can't be reached: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection is used again
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return errLater{resp.StatusCode, time.Duration(seconds) * time.Second}
	default:
		return errRefused{resp.StatusCode}
	}
}
