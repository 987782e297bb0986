package telemetry

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestNothingIsTracedUnasked: without an exporter there are no spans, and a
// client asking for some changes nothing.
func TestNothingIsTracedUnasked(t *testing.T) {
	t.Parallel()
	tel, err := New(Config{Version: "1", Log: quiet()})
	must(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	tel.HTTP("v1", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if trace.SpanFromContext(r.Context()).IsRecording() {
			t.Error("a span is recorded")
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	must(t, tel.Close(t.Context()))
}

// TestSamplingIsByTheClientOrTheRatio: at a ratio of 0 only what a client began
// and keeps is kept.
func TestSamplingIsByTheClientOrTheRatio(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	tel := buildTelemetry(Config{Log: quiet(), Traces: Traces{Ratio: 0}}, exporter)
	handler := tel.HTTP("v1", http.NotFoundHandler())
	for _, parent := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "nonsense"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Traceparent", parent)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	must(t, tel.provider.ForceFlush(t.Context()))
	if spans := exporter.GetSpans(); len(spans) != 1 || spans[0].SpanContext.TraceID().String() != "1af7651916cd43dd8448eb211c80319c" {
		t.Errorf("%+v", spans)
	}
}
