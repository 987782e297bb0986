package telemetry

import (
	"encoding/json"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// OTLP's JSON, as far as our spans need it. Numbers of 64 bits are texts, ids are
// hexadecimal, kinds and statuses are the protocol's numbers.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		TraceState string          `json:"traceState,omitempty"`
		ParentID   string          `json:"parentSpanId,omitempty"`
		Flags      uint32          `json:"flags,omitempty"`
		Name       string          `json:"name"`
		Kind       int             `json:"kind"`
		Start      string          `json:"startTimeUnixNano"`
		End        string          `json:"endTimeUnixNano"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
		Status     otlpStatus      `json:"status"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string  `json:"stringValue,omitempty"`
		Bool   *bool    `json:"boolValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
)

// encode makes one export request of spans, which share our resource and scope.
func encode(spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	list := make([]otlpSpan, 0, len(spans))
	for _, s := range spans {
		list = append(list, encodeSpan(s))
	}
	request := otlpRequest{ResourceSpans: []otlpResourceSpans{{
		Resource:   otlpResource{Attributes: encodeAttributes(spans[0].Resource().Attributes())},
		ScopeSpans: []otlpScopeSpans{{Scope: otlpScope{Name: scope}, Spans: list}},
	}}}
	return json.Marshal(request)
}

func encodeSpan(s sdktrace.ReadOnlySpan) otlpSpan {
	own := s.SpanContext()
	out := otlpSpan{
		TraceID: own.TraceID().String(), SpanID: own.SpanID().String(), TraceState: own.TraceState().String(), Flags: uint32(own.TraceFlags()),
		Name: s.Name(), Kind: int(s.SpanKind()), // both count internal as 1, server as 2
		Start: nanoseconds(s.StartTime()), End: nanoseconds(s.EndTime()),
		Attributes: encodeAttributes(s.Attributes()),
	}
	if parent := s.Parent(); parent.HasSpanID() {
		out.ParentID = parent.SpanID().String()
	}
	switch status := s.Status(); status.Code { // the protocol's ok and error are the other way round
	case codes.Error:
		out.Status = otlpStatus{Code: 2, Message: status.Description}
	case codes.Ok:
		out.Status = otlpStatus{Code: 1}
	case codes.Unset:
	}
	return out
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

// encodeAttributes encodes those of the kinds that we use.
func encodeAttributes(all []attribute.KeyValue) []otlpAttribute {
	list := make([]otlpAttribute, 0, len(all))
	for _, a := range all {
		var v otlpValue
		switch a.Value.Type() {
		case attribute.BOOL:
			is := a.Value.AsBool()
			v.Bool = &is
		case attribute.INT64:
			n := strconv.FormatInt(a.Value.AsInt64(), 10)
			v.Int = &n
		case attribute.FLOAT64:
			f := a.Value.AsFloat64()
			v.Double = &f
		default:
			text := a.Value.String()
			v.String = &text
		}
		list = append(list, otlpAttribute{Key: string(a.Key), Value: v})
	}
	return list
}
