package telemetry

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/loglimit"
)

// Names of what a log line says.
const (
	logSandbox = "sandbox"
	logRun     = "run"
	logRequest = "request"
	logTrace   = "trace"
)

// NewLogger makes a logger of a level (debug, info, warn, error; "": info) and a
// format (text, json; "": text). How many lines there are is nobody else's to choose: see
// package loglimit.
func NewLogger(to io.Writer, level, format string) *slog.Logger {
	return NewLeveledLogger(to, NewLevel(level), format)
}

// NewLevel is a level that may be set anew while loggers have it.
func NewLevel(level string) *slog.LevelVar {
	at := &slog.LevelVar{}
	SetLevel(at, level)
	return at
}

// SetLevel sets a level to what the configuration calls it; "" is info.
func SetLevel(at *slog.LevelVar, level string) {
	var to slog.Level // info
	_ = to.UnmarshalText([]byte(level))
	at.Set(to)
}

// NewLeveledLogger is NewLogger with a level that may be set anew.
func NewLeveledLogger(to io.Writer, level slog.Leveler, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(loglimit.Limit(slog.NewJSONHandler(to, options)))
	}
	return slog.New(loglimit.Limit(slog.NewTextHandler(to, options)))
}

// Masked writes what is written to it without the secrets that a set finds in it, however they are escaped or encoded there: others'
// names and errors are in a log's lines. A line is one write, as slog's handlers make it.
func Masked(to io.Writer, set func() *dlp.Set) io.Writer { return masked{to, set} }

type masked struct {
	to  io.Writer
	set func() *dlp.Set
}

// Write implements io.Writer.
func (m masked) Write(line []byte) (int, error) {
	text := redact.New(m.set()).Text(string(line))
	if text == string(line) {
		return m.to.Write(line)
	}
	if _, err := io.WriteString(m.to, text); err != nil {
		return 0, err
	}
	return len(line), nil
}

// WithRuns makes every line that names a sandbox name its run too, and every line
// of a request the request's id and its trace. runOf returns "" for a sandbox that
// it does not know; it must not log.
func WithRuns(log *slog.Logger, runOf func(sandbox string) string) *slog.Logger {
	return slog.New(&runHandler{Handler: log.Handler(), runOf: runOf})
}

// runHandler adds what a line leaves out.
type runHandler struct {
	slog.Handler
	runOf   func(sandbox string) string
	sandbox string // among the attributes that all lines of this logger have
	run     bool   // is among them
}

// Handle implements slog.Handler.
func (h *runHandler) Handle(ctx context.Context, r slog.Record) error {
	sandbox, run := h.sandbox, h.run
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case logSandbox:
			sandbox = a.Value.Resolve().String()
		case logRun:
			run = true
		}
		return true
	})
	if sandbox != "" && !run {
		if text := h.runOf(sandbox); text != "" {
			r.AddAttrs(slog.String(logRun, text))
		}
	}
	if id := RequestID(ctx); id != "" {
		r.AddAttrs(slog.String(logRequest, id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		r.AddAttrs(slog.String(logTrace, span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *runHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		switch a.Key {
		case logSandbox:
			next.sandbox = a.Value.Resolve().String()
		case logRun:
			next.run = true
		}
	}
	return &next
}

// WithGroup implements slog.Handler.
func (h *runHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.Handler = h.Handler.WithGroup(name)
	return &next
}

// requestKey carries a request's id.
type requestKey struct{}

// WithRequestID puts a request's id into its context.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// RequestID returns the id; "" if ctx is of no request.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
