package telemetry

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// described are the metrics of ours by name, with their labels.
func described(t *testing.T) map[string]string {
	t.Helper()
	tel, _ := newTelemetry(t, Traces{})
	tel.Watch(Sources{})
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		tel.registry.Describe(descs)
	}()
	shape := regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)
	all := map[string]string{}
	for d := range descs {
		m := shape.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s is described in another way", d)
		}
		if strings.HasPrefix(m[1], namespace+"_") {
			all[m[1]] = strings.ReplaceAll(m[2], ",", ", ")
		}
	}
	return all
}

// TestTheTableOfMetrics: docs/operations.md has every metric with its labels, and
// no other.
func TestTheTableOfMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations.md"))
	must(t, err)
	written := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(cofferdam_[a-z_]+)` \\| [a-z]+ \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		written[m[1]] = strings.ReplaceAll(strings.TrimSpace(m[2]), "`", "")
	}
	if diff := cmp.Diff(described(t), written); diff != "" {
		t.Errorf("the registry (-) and docs/operations.md (+): %s", diff)
	}
}

// TestLabelsAreFew: a guest can make as many names as it likes, and no metric
// grows of that.
func TestLabelsAreFew(t *testing.T) {
	t.Parallel()
	tel, _ := newTelemetry(t, Traces{})
	watched := tel.Door(answering{})
	series := func() int { return strings.Count(scrape(t, tel), "\ncofferdam_") }
	noise := func(n int) {
		for i := range n {
			name := strings.Repeat("x", i+1)
			tel.Recorded(Record{Sandbox: name, Run: name, Kind: "package", Outcome: "blocked"})
			tel.Decided("python", "blocked")
			tel.Decided(name, "blocked")
			_, err := watched.Serve(t.Context(), door.ServeAsk{FileAsk: door.FileAsk{Sandbox: name, Package: pkgref.Ref{Ecosystem: pkgref.Ecosystem(name), Name: name}}})
			must(t, err)
			_, err = watched.Name(t.Context(), door.NameAsk{Sandbox: name, Name: name})
			must(t, err)
		}
	}
	noise(1)
	before := series()
	noise(50)
	if after := series(); after != before {
		t.Errorf("%d series became %d", before, after)
	}
	if text := scrape(t, tel); strings.Contains(text, "xxx") {
		t.Error("a guest's text is in the metrics")
	}
}

// answering allows everything.
type answering struct{ door.Door }

func (answering) Judge(ctx context.Context, _ door.JudgeAsk) (door.Answer, error) {
	return door.Answer{Decision: policy.Decision{Effect: policy.Allow}}, ctx.Err()
}

func (answering) Serve(ctx context.Context, _ door.ServeAsk) (door.Answer, error) {
	return door.Answer{Decision: policy.Decision{Effect: policy.Allow}}, ctx.Err()
}

func (answering) Name(ctx context.Context, _ door.NameAsk) (door.NameAnswer, error) {
	return door.NameAnswer{Answer: door.Answer{Decision: policy.Decision{Effect: policy.Deny}}}, ctx.Err()
}

func TestWhatIsCountedOfTheDoor(t *testing.T) {
	t.Parallel()
	tel, _ := newTelemetry(t, Traces{})
	watched := tel.Door(answering{})
	six := door.FileAsk{Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "six", Version: "1.0"}}
	_, err := watched.Judge(t.Context(), door.JudgeAsk{FileAsk: six})
	must(t, err)
	for _, ask := range []door.ServeAsk{{Bytes: door.Bytes{Size: 100}}, {Bytes: door.Bytes{Size: 11}, Kept: true}, {Bytes: door.Bytes{Size: -5}}} {
		ask.FileAsk = six
		_, err := watched.Serve(t.Context(), ask)
		must(t, err)
	}
	has(t, tel,
		`cofferdam_door_calls_total{call="artifact",result="allow"} 1`, `cofferdam_door_calls_total{call="serve",result="allow"} 3`,
		`cofferdam_served_bytes_total{ecosystem="python"} 111`,
		`cofferdam_served_files_total{cache="hit",ecosystem="python"} 1`, `cofferdam_served_files_total{cache="miss",ecosystem="python"} 2`,
	)
}

func TestRunsAreKnownBeyondTheirEnd(t *testing.T) {
	t.Parallel()
	runs := NewRuns()
	tel, err := New(Config{Log: quiet(), Runs: runs})
	must(t, err)
	for _, outcome := range []string{"started", "finished"} {
		tel.Recorded(Record{Kind: "sandbox", Outcome: outcome, Sandbox: "sb1", Run: "run-1"})
	}
	if got := runs.Of("sb1") + runs.Of("sb2"); got != "run-1" {
		t.Errorf("%q", got)
	}
	for i := range 3 * maxRuns {
		runs.learnRun("sb1", "run-1")
		runs.learnRun(strconv.Itoa(i), "r")
	}
	if n := len(runs.recent) + len(runs.old); n > 2*maxRuns || runs.Of("sb1") != "run-1" {
		t.Errorf("%d are kept, and of sb1 %q", n, runs.Of("sb1"))
	}
}

func TestWhatIsLookedUp(t *testing.T) {
	t.Parallel()
	tel, _ := newTelemetry(t, Traces{})
	tel.Watch(Sources{
		Sandboxes: func() map[string]int { return map[string]int{"running": 3, "paused": 0} },
		Pool:      func() Pool { return Pool{Ready: 2, Hits: 5, Misses: 1} },
		Pending:   func() int { return 4 },
		Jump:      func() time.Duration { return -time.Hour },
		Log:       func() LogSize { return LogSize{Records: 10, Bytes: 2_000} },
		Load: func() Load {
			return Load{
				PromisedCPU: 2.5, PromisedMemory: 4096, CPU: 8, Memory: 2048, MemoryAvailable: 1024, Waiting: map[string]int{"create": 7},
				Bytes: map[string]int64{"cache": 11}, Pressure: map[string]Pressure{"io": {Some: 0.5, Full: 0.25}},
			}
		},
		Ready: func() map[string]bool { return map[string]bool{"log": true, "gateway": false} },
	})
	has(t, tel,
		`cofferdam_sandboxes{state="running"} 3`, `cofferdam_sandboxes{state="paused"} 0`, `cofferdam_pool_ready 2`,
		`cofferdam_pool_claims_total{result="hit"} 5`, `cofferdam_pool_claims_total{result="miss"} 1`, `cofferdam_approvals_pending 4`,
		`cofferdam_log_records 10`, `cofferdam_log_bytes 2000`, `cofferdam_ready{check="log"} 1`, `cofferdam_ready{check="gateway"} 0`, `cofferdam_clock_jump_seconds -3600`,
		`cofferdam_build_info{version="1.2.3"} 1`,
		`cofferdam_promised_cpus 2.5`, `cofferdam_host_cpus 8`, `cofferdam_promised_memory_bytes 4096`, `cofferdam_host_memory_bytes 2048`, `cofferdam_host_memory_available_bytes 1024`,
		`cofferdam_turns_waiting{for="create"} 7`, `cofferdam_directory_bytes{directory="cache"} 11`, `cofferdam_host_pressure_ratio{kind="some",resource="io"} 0.5`, `cofferdam_host_pressure_ratio{kind="full",resource="io"} 0.25`,
	)
	if text := scrape(t, tel); !strings.Contains(text, "\ngo_goroutines ") || !strings.Contains(text, "\nprocess_open_fds ") {
		t.Error("the runtime's own are missing")
	}
	names := slices.Sorted(maps.Keys(described(t)))
	for _, name := range names {
		if !regexp.MustCompile(`^cofferdam_[a-z_]+$`).MatchString(name) {
			t.Errorf("the name %s", name)
		}
	}
}
