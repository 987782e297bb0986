package telemetry

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// HTTP counts and traces the requests of a wire. A traceparent header of the
// client's makes its trace ours. A request's route is the pattern that the
// handler's ServeMux matched it with: what a client writes is never a label.
func (t *Telemetry) HTTP(wire string, next http.Handler) http.Handler {
	propagator := propagation.TraceContext{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer))
		r = r.WithContext(ctx) // the copy is what the mux writes its pattern into
		out := &observedAnswer{ResponseWriter: w, began: time.Now()}
		t.metrics.inFlight.WithLabelValues(wire).Inc()
		returned := false
		defer func() {
			t.metrics.inFlight.WithLabelValues(wire).Dec()
			t.noteAnswered(wire, r, out, span, returned)
		}()
		next.ServeHTTP(out, r)
		returned = true
	})
}

// noteAnswered notes a request's end; returned is false if the handler
// panicked.
func (t *Telemetry) noteAnswered(wire string, r *http.Request, out *observedAnswer, span trace.Span, returned bool) {
	route, status := r.Pattern, out.status
	if route == "" {
		route = "other"
	}
	switch {
	case !returned && status == 0:
		status = http.StatusInternalServerError
	case status == 0:
		status = http.StatusOK
	}
	if out.first == 0 {
		out.first = time.Since(out.began)
	}
	code := strconv.Itoa(status)
	t.metrics.requests.WithLabelValues(wire, route, code).Inc()
	t.metrics.requesting.WithLabelValues(wire).Observe(out.first.Seconds())
	span.SetName(wire + " " + route)
	setTexts(span, map[attribute.Key]string{keyRoute: route, keyAPI: RequestID(r.Context())})
	span.SetAttributes(keyStatus.Int(status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	span.End()
}

// Limited counts a request that came too fast; who is one of a few kinds of
// clients.
func (t *Telemetry) Limited(who string) { t.metrics.limited.WithLabelValues(who).Inc() }

// Panicked counts a handler that panicked.
func (t *Telemetry) Panicked() { t.metrics.panics.Inc() }

// observedAnswer knows what a handler answers with, and when it began to.
type observedAnswer struct {
	http.ResponseWriter
	began  time.Time
	status int           // 0: none yet
	first  time.Duration // until the answer began
}

// Unwrap is for http.ResponseController, for what is not here.
func (a *observedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// begins takes the status that counts: the first that is no interim one.
func (a *observedAnswer) begins(status int) {
	if a.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		a.status, a.first = status, time.Since(a.began)
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *observedAnswer) WriteHeader(status int) {
	a.begins(status)
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *observedAnswer) Write(b []byte) (int, error) {
	a.begins(http.StatusOK)
	return a.ResponseWriter.Write(b)
}

// ReadFrom keeps what the connection can do by itself with a file.
func (a *observedAnswer) ReadFrom(from io.Reader) (int64, error) {
	a.begins(http.StatusOK)
	return io.Copy(a.ResponseWriter, from)
}

// Hijack implements http.Hijacker: what follows is an upgraded connection.
func (a *observedAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err == nil {
		a.begins(http.StatusSwitchingProtocols)
	}
	return conn, buffered, err
}

// Flush implements http.Flusher.
func (a *observedAnswer) Flush() {
	a.begins(http.StatusOK)
	_ = http.NewResponseController(a.ResponseWriter).Flush() // one that can't has nothing to flush
}
