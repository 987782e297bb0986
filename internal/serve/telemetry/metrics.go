package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// namespace begins every name of ours.
const namespace = "cofferdam"

// metrics are all that is counted as it happens; what is looked up at each
// scrape is in Sources.
type metrics struct {
	build *prometheus.GaugeVec

	operations *prometheus.CounterVec   // operation, result
	operating  *prometheus.HistogramVec // operation
	commands   *prometheus.CounterVec   // result

	moves           *prometheus.CounterVec // state
	journaling      prometheus.Histogram
	journalFailures prometheus.Counter

	calls   *prometheus.CounterVec   // call, result
	calling *prometheus.HistogramVec // call

	decisions   *prometheus.CounterVec // ecosystem, outcome
	servedFiles *prometheus.CounterVec // ecosystem, cache
	servedBytes *prometheus.CounterVec // ecosystem

	holding prometheus.Gauge
	held    *prometheus.HistogramVec // answer

	records        *prometheus.CounterVec // kind, outcome
	appending      prometheus.Histogram
	appendFailures prometheus.Counter
	alarms         *prometheus.CounterVec // kind

	requests   *prometheus.CounterVec   // wire, route, status
	requesting *prometheus.HistogramVec // wire
	inFlight   *prometheus.GaugeVec     // wire
	limited    *prometheus.CounterVec   // who
	panics     prometheus.Counter
	lost       prometheus.CounterFunc
}

// Buckets, in seconds: of what should take milliseconds, and of what people do.
func quickBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

func longTimes() []float64 {
	return []float64{1, 5, 15, 60, 300, 900, 3_600, 4 * 3_600, 24 * 3_600, 7 * 24 * 3_600}
}

func newMetrics() metrics {
	return metrics{
		build: gauges("build_info", "1, with the daemon's version.", "version"),

		operations: counters("sandbox_operations_total", "What was done with sandboxes.", "operation", "result"),
		operating:  histograms("sandbox_operation_seconds", "How long that took.", quickBuckets(), "operation"),
		commands:   counters("commands_finished_total", "Commands that ended.", "result"),

		moves:           counters("sandbox_states_total", "States that sandboxes came into.", "state"),
		journaling:      prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "journal_write_seconds", Help: "How long the journal of sandboxes took to write.", Buckets: quickBuckets()}),
		journalFailures: prometheus.NewCounter(prometheus.CounterOpts(gaugeOpts("journal_failures_total", "Entries of sandboxes that could not be written."))),

		calls:   counters("door_calls_total", "What the gateway asked the daemon.", "call", "result"),
		calling: histograms("door_call_seconds", "How long an answer took; waiting for a person is in it.", quickBuckets(), "call"),

		decisions:   counters("decisions_total", "Decisions about packages that are on record.", "ecosystem", "outcome"),
		servedFiles: counters("served_files_total", "Artifacts that were served; cache tells whether the bytes were there when they were asked for.", "ecosystem", "cache"),
		servedBytes: counters("served_bytes_total", "Their bytes.", "ecosystem"),

		holding: prometheus.NewGauge(gaugeOpts("holds_waiting", "Requests of sandboxes that wait for a person now.")),
		held:    histograms("hold_seconds", "How long such a request waited.", longTimes(), "answer"),

		records:        counters("log_records_total", "Records of the audit log by this daemon.", "kind", "outcome"),
		appending:      prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "log_append_seconds", Help: "How long a record took to be durable.", Buckets: quickBuckets()}),
		appendFailures: prometheus.NewCounter(prometheus.CounterOpts(gaugeOpts("log_append_failures_total", "Records that could not be written: what they were to record was refused."))),

		alarms: counters("alarms_total", "Alarms in the audit log since the daemon's start.", "kind"),

		requests:   counters("api_requests_total", "Requests of clients.", "wire", "route", "status"),
		requesting: histograms("api_request_seconds", "Until the answer began.", quickBuckets(), "wire"),
		inFlight:   gauges("api_requests_in_flight", "Requests and streams that go on now.", "wire"),
		limited:    counters("api_requests_limited_total", "Requests that were refused with 429 because they came too fast.", "who"),
		panics:     prometheus.NewCounter(prometheus.CounterOpts(gaugeOpts("api_panics_total", "Requests whose handler panicked."))),
		lost:       prometheus.NewCounterFunc(prometheus.CounterOpts(gaugeOpts("goroutine_panics_total", "Goroutines of the daemon that panicked, other than requests.")), func() float64 { return float64(safego.Lost()) }),
	}
}

func (m *metrics) listCollectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.build, m.operations, m.operating, m.commands, m.moves, m.journaling, m.journalFailures, m.calls, m.calling, m.decisions, m.servedFiles, m.servedBytes,
		m.holding, m.held, m.records, m.appending, m.appendFailures, m.alarms, m.requests, m.requesting, m.inFlight, m.limited, m.panics, m.lost,
	}
}

func gaugeOpts(name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts(gaugeOpts(name, help)), labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(gaugeOpts(name, help), labels)
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// secondsSince is how long ago a time is, in seconds.
func secondsSince(began time.Time) float64 { return time.Since(began).Seconds() }
