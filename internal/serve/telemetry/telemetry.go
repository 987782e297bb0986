// Package telemetry is what operators see of a daemon from outside: metrics,
// traces, and the shape of its log. It is told what happens in plain words, and knows
// none of the daemon's parts but the door; package watched stands around them and
// tells. No other package imports Prometheus or OpenTelemetry.
//
// The labels of a metric have few and known values (never a package's name, never what a guest or a
// client wrote). A trace has the spans of all that belongs together, from a client's request
// through the sandbox and its commands to each decision of the door and the person who is waited
// for. A sandbox's decisions are taken to come from its newest command.
//
// Spans have ids (of sandboxes, runs, requests), ecosystems, package names,
// versions, rules and outcomes. They have no people's names, no tasks, no
// arguments, no paths, no host names that a guest asked for, and no texts.
package telemetry

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config is what a Telemetry is made of; the zero value counts and traces
// nothing.
type Config struct {
	Version string
	Traces  Traces
	Log     *slog.Logger // of what goes wrong with the traces themselves; needed
	Runs    *Runs        // learns from the records; nil: nobody asks
}

// Telemetry counts and traces. Safe for concurrent use.
type Telemetry struct {
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  metrics
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider // nil: nothing is traced
	newest   newest
	runs     *Runs
}

// New makes the metrics and, if they go anywhere, the traces. Close ends it.
func New(cfg Config) (*Telemetry, error) {
	exporter, err := newExporter(cfg)
	if err != nil {
		return nil, err
	}
	return buildTelemetry(cfg, exporter), nil
}

// buildTelemetry takes any exporter; nil: nothing is traced.
func buildTelemetry(cfg Config, exporter sdktrace.SpanExporter) *Telemetry {
	t := &Telemetry{log: cfg.Log, registry: prometheus.NewRegistry(), metrics: newMetrics(), newest: newNewest(), runs: cfg.Runs}
	if t.runs == nil {
		t.runs = NewRuns()
	}
	t.provider, t.tracer = newTracer(cfg, exporter)
	t.metrics.build.WithLabelValues(cfg.Version).Set(1)
	t.registry.MustRegister(t.metrics.listCollectors()...)
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// Metrics serves all of them in the text format.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(t.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	})
}

// Close sends what spans there are still, as far as ctx allows.
func (t *Telemetry) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}
