package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Sources are looked up at each scrape. A nil one is left out.
type Sources struct {
	Sandboxes func() map[string]int  // how many are in each state
	Pool      func() Pool            // how the pool stands
	Pending   func() int             // requests that no person has answered
	Log       func() LogSize         // how large the audit log is
	Ready     func() map[string]bool // by what is checked
	Jump      func() time.Duration   // how far the host's clock is off
}

// Pool is how the pool stands; hits and misses count from the daemon's start.
type Pool struct {
	Ready        int
	Hits, Misses int64
}

// LogSize is how large the audit log is.
type LogSize struct {
	Records int64
	Bytes   int64 // of all its files
}

// Watch adds what is looked up at each scrape; once.
func (t *Telemetry) Watch(s Sources) { t.registry.MustRegister(newLookups(s)) }

// lookups are Sources as a collector.
type lookups struct {
	sources                                                                      Sources
	sandboxes, poolReady, poolClaims, pending, logRecords, logBytes, ready, jump *prometheus.Desc
}

func newLookups(s Sources) *lookups {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &lookups{
		sources:    s,
		sandboxes:  desc("sandboxes", "Sandboxes by state.", "state"),
		poolReady:  desc("pool_ready", "Sandboxes that were started ahead and wait to be claimed."),
		poolClaims: desc("pool_claims_total", "Sandboxes that were wanted of the pool.", "result"),
		pending:    desc("approvals_pending", "Requests in the approval queue that nobody has answered."),
		logRecords: desc("log_records", "Records in the audit log."),
		logBytes:   desc("log_bytes", "Size of the audit log's directory."),
		ready:      desc("ready", "1 if a check of readiness passes.", "check"),
		jump:       desc("clock_jump_seconds", "How far the host's clock has jumped ahead, negative if back; 0 while it is believed."),
	}
}

// Describe implements prometheus.Collector.
func (l *lookups) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.sandboxes, l.poolReady, l.poolClaims, l.pending, l.logRecords, l.logBytes, l.ready, l.jump} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (l *lookups) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	if l.sources.Sandboxes != nil {
		for state, n := range l.sources.Sandboxes() {
			gauge(l.sandboxes, float64(n), state)
		}
	}
	if l.sources.Pool != nil {
		p := l.sources.Pool()
		gauge(l.poolReady, float64(p.Ready))
		to <- prometheus.MustNewConstMetric(l.poolClaims, prometheus.CounterValue, float64(p.Hits), "hit")
		to <- prometheus.MustNewConstMetric(l.poolClaims, prometheus.CounterValue, float64(p.Misses), "miss")
	}
	if l.sources.Pending != nil {
		gauge(l.pending, float64(l.sources.Pending()))
	}
	if l.sources.Log != nil {
		size := l.sources.Log()
		gauge(l.logRecords, float64(size.Records))
		gauge(l.logBytes, float64(size.Bytes))
	}
	if l.sources.Jump != nil {
		gauge(l.jump, l.sources.Jump().Seconds())
	}
	if l.sources.Ready != nil {
		for check, passes := range l.sources.Ready() {
			gauge(l.ready, map[bool]float64{true: 1}[passes], check)
		}
	}
}
