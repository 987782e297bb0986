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
	Load      func() Load            // how full the host is
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

// Load is how full the host is.
type Load struct {
	PromisedCPU             float64 // processors, by the limits of the sandboxes that run
	PromisedMemory          int64   // bytes, likewise
	CPU                     int     // that the host has
	Memory, MemoryAvailable int64   // the host's, in bytes; 0: not known
	Waiting                 map[string]int
	Bytes                   map[string]int64    // on the disk, by the directory below the state directory
	Pressure                map[string]Pressure // by resource; empty where the kernel does not count it
}

// Pressure is the share of the last ten seconds in which some of the host's programs waited for a
// resource, or all did.
type Pressure struct{ Some, Full float64 }

// Watch adds what is looked up at each scrape; once.
func (t *Telemetry) Watch(s Sources) { t.registry.MustRegister(newLookups(s)) }

// lookups are Sources as a collector.
type lookups struct {
	sources                                                                      Sources
	sandboxes, poolReady, poolClaims, pending, logRecords, logBytes, ready, jump *prometheus.Desc
	load                                                                         loadDescs
}

// loadDescs are those of Load.
type loadDescs struct {
	promisedCPU, cpu, promisedMemory, memory, available, waiting, bytes, pressure *prometheus.Desc
}

func (l *lookups) listDescs() []*prometheus.Desc {
	return []*prometheus.Desc{
		l.sandboxes, l.poolReady, l.poolClaims, l.pending, l.logRecords, l.logBytes, l.ready, l.jump,
		l.load.promisedCPU, l.load.cpu, l.load.promisedMemory, l.load.memory, l.load.available, l.load.waiting, l.load.bytes, l.load.pressure,
	}
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
		load: loadDescs{
			promisedCPU:    desc("promised_cpus", "Processors that the limits of all running sandboxes add up to."),
			cpu:            desc("host_cpus", "Processors of the host."),
			promisedMemory: desc("promised_memory_bytes", "Memory that the limits of all running sandboxes add up to."),
			memory:         desc("host_memory_bytes", "Memory of the host."),
			available:      desc("host_memory_available_bytes", "Memory that the host's kernel thinks can be had."),
			waiting:        desc("turns_waiting", "Requests that wait for a turn.", "for"),
			bytes:          desc("directory_bytes", "Disk that a directory of the state directory takes.", "directory"),
			pressure:       desc("host_pressure_ratio", "Share of the last ten seconds in which programs of the host waited for a resource.", "resource", "kind"),
		},
	}
}

// Describe implements prometheus.Collector.
func (l *lookups) Describe(to chan<- *prometheus.Desc) {
	for _, d := range l.listDescs() {
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
	if l.sources.Load != nil {
		l.load.collect(l.sources.Load(), gauge)
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

func (d loadDescs) collect(load Load, gauge func(*prometheus.Desc, float64, ...string)) {
	gauge(d.promisedCPU, load.PromisedCPU)
	gauge(d.cpu, float64(load.CPU))
	gauge(d.promisedMemory, float64(load.PromisedMemory))
	if load.Memory > 0 {
		gauge(d.memory, float64(load.Memory))
		gauge(d.available, float64(load.MemoryAvailable))
	}
	for what, n := range load.Waiting {
		gauge(d.waiting, float64(n), what)
	}
	for directory, bytes := range load.Bytes {
		gauge(d.bytes, float64(bytes), directory)
	}
	for resource, p := range load.Pressure {
		gauge(d.pressure, p.Some, resource, "some")
		gauge(d.pressure, p.Full, resource, "full")
	}
}
