package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// receiver answers with statuses in turn, the last one for ever, and keeps what it
// took.
type receiver struct {
	t        *testing.T
	statuses []int
	asked    atomic.Int64
	took     chan []byte
}

func newReceiver(t *testing.T, statuses ...int) (*receiver, string) {
	t.Helper()
	r := &receiver{t: t, statuses: statuses, took: make(chan []byte, 8)}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return r, s.URL + "/v1/traces"
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n := int(r.asked.Add(1)) - 1
	status := r.statuses[min(n, len(r.statuses)-1)]
	body, err := io.ReadAll(req.Body)
	if err != nil || req.Header.Get("Content-Type") != "application/json" || req.Header.Get("X-Key") != "k" || req.URL.Path != "/v1/traces" {
		r.t.Errorf("%v %v %s", err, req.Header, req.URL)
	}
	w.WriteHeader(status)
	if status == http.StatusOK {
		r.took <- body
	}
}

// logText is a log that is read.
type logText struct{ bytes.Buffer }

func newTelemetry(t *testing.T, traces Traces) (*Telemetry, *logText) {
	t.Helper()
	var log logText
	traces.Ratio = 1
	tel, err := New(Config{Version: "1.2.3", Log: slog.New(slog.NewTextHandler(&log, nil)), Traces: traces})
	must(t, err)
	return tel, &log
}

// work makes two spans.
func work(ctx context.Context, tel *Telemetry) {
	ctx, outer := tel.tracer.Start(ctx, "outer", trace.WithSpanKind(trace.SpanKindServer))
	_, inner := tel.tracer.Start(ctx, "inner")
	inner.SetAttributes(attribute.String("text", `a "b"`), attribute.Int64("number", 1<<60), attribute.Bool("is", true), attribute.Float64("share", 0.5))
	inner.SetStatus(codes.Error, "invalid")
	inner.End()
	outer.End()
}

func TestSpansGoToAReceiver(t *testing.T) {
	t.Parallel()
	for name, statuses := range map[string][]int{"at once": {200}, "when it can": {503, 200}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, url := newReceiver(t, statuses...)
			tel, log := newTelemetry(t, Traces{URL: url, Headers: map[string]string{"X-Key": "k"}})
			work(t.Context(), tel)
			must(t, tel.Close(t.Context()))
			checkBatch(t, <-r.took)
			if log.Len() > 0 {
				t.Error(log.String())
			}
		})
	}
}

// checkBatch checks that a batch is what the protocol's JSON is: ids in
// hexadecimal, 64-bit numbers as text.
func checkBatch(t *testing.T, batch []byte) {
	t.Helper()
	var got otlpRequest
	dec := json.NewDecoder(bytes.NewReader(batch))
	dec.DisallowUnknownFields()
	must(t, dec.Decode(&got))
	if len(got.ResourceSpans) != 1 || len(got.ResourceSpans[0].ScopeSpans) != 1 {
		t.Fatalf("%s", batch)
	}
	if service := got.ResourceSpans[0].Resource.Attributes[0]; service.Key != "service.name" || *service.Value.String != "cofferdam" {
		t.Errorf("%+v", service)
	}
	spans := got.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	inner, outer := spans[0], spans[1]
	if inner.ParentID != outer.SpanID || inner.TraceID != outer.TraceID || len(outer.TraceID) != 32 || len(outer.SpanID) != 16 || outer.ParentID != "" {
		t.Errorf("ids: %+v, %+v", inner, outer)
	}
	if outer.Kind != 2 || inner.Kind != 1 || inner.Status != (otlpStatus{Message: "invalid", Code: 2}) || outer.Status.Code != 0 {
		t.Errorf("kinds and statuses: %+v, %+v", inner, outer)
	}
	for _, want := range []string{
		`{"key":"text","value":{"stringValue":"a \"b\""}}`, `{"key":"number","value":{"intValue":"1152921504606846976"}}`,
		`{"key":"is","value":{"boolValue":true}}`, `{"key":"share","value":{"doubleValue":0.5}}`,
	} {
		if !strings.Contains(string(batch), want) {
			t.Errorf("no %s in %s", want, batch)
		}
	}
}

// TestLostSpansAreTold: a receiver that refuses is asked once, and the log has the
// number, not the receiver's text.
func TestLostSpansAreTold(t *testing.T) {
	t.Parallel()
	r, url := newReceiver(t, http.StatusBadRequest)
	tel, log := newTelemetry(t, Traces{URL: url, Headers: map[string]string{"X-Key": "k"}})
	work(t.Context(), tel)
	must(t, tel.Close(t.Context()))
	if n := r.asked.Load(); n != 1 || !strings.Contains(log.String(), "spans=2") {
		t.Errorf("asked %d times; %s", n, log.String())
	}
}

func TestSpansGoToAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "traces")
	for range 2 { // another daemon goes on behind the last one's
		tel, log := newTelemetry(t, Traces{File: path})
		work(t.Context(), tel)
		must(t, tel.Close(t.Context()))
		if log.Len() > 0 {
			t.Error(log.String())
		}
	}
	data, err := os.ReadFile(path)
	must(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		checkBatch(t, []byte(line))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := New(Config{Log: quiet(), Traces: Traces{File: t.TempDir()}}); err == nil {
		t.Error("a directory was taken for the file")
	}
}
