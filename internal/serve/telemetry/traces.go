package telemetry

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope names the spans' maker.
const scope = "cofferdam"

// Traces says where spans go; at most one of URL and File. The zero value is
// nowhere.
type Traces struct {
	URL     string            // of an OTLP receiver, with its path
	Headers map[string]string // of each request to it
	File    string            // gets a line of OTLP's JSON for each batch
	// Ratio is the share of traces that begin here and are kept, 0 to 1. One that
	// a client began is kept if the client keeps it.
	Ratio float64
}

// newTracer makes the tracer; without an exporter it makes spans of nothing.
func newTracer(cfg Config, exporter sdktrace.SpanExporter) (*sdktrace.TracerProvider, trace.Tracer) {
	if exporter == nil {
		return nil, noop.NewTracerProvider().Tracer(scope)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Traces.Ratio))),
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", scope), attribute.String("service.version", cfg.Version),
		)),
	)
	return provider, provider.Tracer(scope)
}

// Names of what spans say.
const (
	keySandbox   = attribute.Key("cofferdam.sandbox")
	keyRun       = attribute.Key("cofferdam.run")
	keyCommand   = attribute.Key("cofferdam.command")
	keyEcosystem = attribute.Key("cofferdam.ecosystem")
	keyPackage   = attribute.Key("cofferdam.package")
	keyVersion   = attribute.Key("cofferdam.version")
	keyEffect    = attribute.Key("cofferdam.effect")
	keyRule      = attribute.Key("cofferdam.rule")
	keyRequest   = attribute.Key("cofferdam.request")
	keyRecord    = attribute.Key("cofferdam.record")
	keyApproval  = attribute.Key("cofferdam.approval")
	keyAnswer    = attribute.Key("cofferdam.answer")
	keyAPI       = attribute.Key("cofferdam.api_request")
	keyRoute     = attribute.Key("http.route")
	keyStatus    = attribute.Key("http.response.status_code")
)

// endSpan ends a span; an error is told by its category, since its text may have
// anything in it.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, categoryOf(err))
	}
	span.End()
}

// setTexts adds texts to a span; empty ones are left out.
func setTexts(span trace.Span, texts map[attribute.Key]string) {
	for key, text := range texts {
		if text != "" {
			span.SetAttributes(key.String(text))
		}
	}
}

// newest knows each sandbox's newest command as a span, which the sandbox's
// decisions come from.
type newest struct {
	mu    sync.Mutex // guards spans
	spans map[string]trace.SpanContext
}

func newNewest() newest { return newest{spans: map[string]trace.SpanContext{}} }

// rememberSpan remembers the span in ctx for a sandbox.
func (n *newest) rememberSpan(ctx context.Context, sandbox string) {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() || sandbox == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spans[sandbox] = span
}

// forgetSandbox forgets a sandbox that has ended.
func (n *newest) forgetSandbox(sandbox string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.spans, sandbox)
}

// underNewest puts the sandbox's newest command into ctx as the parent of what comes.
func (n *newest) underNewest(ctx context.Context, sandbox string) context.Context {
	n.mu.Lock()
	span, known := n.spans[sandbox]
	n.mu.Unlock()
	if !known {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, span)
}
