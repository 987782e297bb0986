package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/webhook"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/report"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// bell is an installation, as far as alarms go: its door, its log and who is told.
type bell struct {
	t    *testing.T
	dir  string
	door *admission.Controller
	log  *audit.FileLog
	db   *advisory.DB
	far  atomic.Int64 // of the host's clock, nanoseconds
	tel  *telemetry.Telemetry
	v1   *client.Client
	out  bytes.Buffer // the operator's log; for reading only at the end

	mu   sync.Mutex // guards told
	told []webhook.AlarmBody
}

// Read implements clock.Source.
func (b *bell) Read() clock.Reading {
	now := time.Now()
	return clock.Reading{Now: now, Wall: now.Add(time.Duration(b.far.Load()))}
}

// RoundTrip implements http.RoundTripper: it is the webhook.
func (b *bell) RoundTrip(req *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var body webhook.AlarmBody
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, body)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// silent is a queue in which nothing happens.
type silent struct{}

func (silent) Watch(ctx context.Context, _ uint64) iter.Seq2[approval.Event, error] {
	return func(func(approval.Event, error) bool) { <-ctx.Done() }
}

func (silent) LastEvent() uint64 { return 0 }

// cursorsInMemory keeps where hooks stand.
type cursorsInMemory struct{ all sync.Map }

func (c *cursorsInMemory) Cursor(_ context.Context, hook string) (uint64, bool, error) {
	n, ok := c.all.Load(hook)
	if !ok {
		return 0, false, nil
	}
	return n.(uint64), true, nil //nolint:forcetypeassert // SetCursor stores nothing else
}

func (c *cursorsInMemory) SetCursor(_ context.Context, hook string, n uint64) error {
	c.all.Store(hook, n)
	return nil
}

func newBell(t *testing.T) *bell {
	t.Helper()
	b := &bell{t: t, dir: t.TempDir()}
	var err error
	b.log, err = audit.Open(filepath.Join(b.dir, "log"), audit.Options{Clock: b})
	must(t, err)
	t.Cleanup(func() { must(t, b.log.Close()) })
	operator := slog.New(slog.NewTextHandler(&b.out, nil))
	b.tel, err = telemetry.New(telemetry.Config{Version: "1", Log: quiet()})
	must(t, err)
	follower := followAlarms(t.Context(), b.log, b.tel, operator)
	t.Cleanup(follower.endFollower)
	b.db = advisory.Open(filepath.Join(b.dir, "db"), advisory.Options{})
	b.door = admission.New(admission.Config{Clients: all.Asked, Log: b.log, Clock: b, Advisories: b.db})

	hook := webhook.Hook{URL: "http://127.0.0.1/alarms", Format: webhook.JSON, Secret: []byte("0123456789abcdef"), Events: []approval.EventName{webhook.EventAlarm}}
	sender, err := webhook.New(webhook.Config{
		Hooks: []webhook.Hook{hook}, Source: silent{}, Cursors: &cursorsInMemory{}, Transport: b, Alarms: follower.watchAlarms, FirstAlarm: follower.first,
	})
	must(t, err)
	telling, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		sender.Run(telling)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	b.serve()
	return b
}

// serve offers /v1 of it.
func (b *bell) serve() {
	b.t.Helper()
	x := index.New(filepath.Join(b.dir, "index.db"), b.log, index.Options{})
	b.t.Cleanup(func() { must(b.t, x.Close()) })
	socket := filepath.Join(b.dir, "s")
	listener, err := (&net.ListenConfig{}).Listen(b.t.Context(), "unix", socket)
	must(b.t, err)
	server := &http.Server{ConnContext: httpapi.ConnContext, Handler: httpapi.New(httpapi.Config{
		Log: b.log, Logger: quiet(), Audit: httpapi.Auditing{Index: x, Reports: report.New(report.Config{Index: x}), End: b.log.End},
	})}
	go func() { _ = server.Serve(listener) }()
	b.t.Cleanup(func() { must(b.t, server.Close()) })
	b.v1 = client.New(socket)
}

// begin registers the sandbox of run r1.
func (b *bell) begin(document string, lock *lockfile.Set) {
	b.t.Helper()
	p, err := policy.Parse("p.yaml", []byte(document))
	must(b.t, err)
	must(b.t, b.door.Register(admission.Run{Sandbox: "sb1", Run: "r1", User: "ann", Policy: p, Lock: lock}))
	must(b.t, b.door.SandboxStarted(b.t.Context(), "sb1"))
}

// file is one of a release, whose bytes have a digest that follows from text.
func (b *bell) file(name, text string) door.FileAsk {
	return door.FileAsk{
		Sandbox: "sb1", Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: "1.0"}, SourceURL: "https://files.example/" + name,
		File: door.File{
			Name: name + "-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel,
			Digest: "sha256:" + digestOf(text), Published: b.Read().Now.AddDate(-1, 0, 0),
		},
	}
}

func digestOf(text string) string { return (fmt.Sprintf("%x", text) + strings.Repeat("0", 64))[:64] }

// get has a file served, or refused.
func (b *bell) get(name, text string) {
	b.t.Helper()
	_, err := b.door.Serve(b.t.Context(), door.ServeAsk{FileAsk: b.file(name, text), Bytes: door.Bytes{SHA256: digestOf(text), Size: 10}})
	must(b.t, err)
}

// pin is a lockfile in the mode prefer that has release 1.0 of a package with one digest.
func (b *bell) pin(name, text string) *lockfile.Set {
	b.t.Helper()
	file, err := lockfile.Parse("requirements.txt", []byte(name+"==1.0 --hash=sha256:"+digestOf(text)+"\n"))
	must(b.t, err)
	set, err := lockfile.NewSet(policy.LockRules{Given: true, Mode: policy.LockPrefer}, []*lockfile.Lockfile{file})
	must(b.t, err)
	return set
}

// advise imports an advisory of malware about all releases of a package.
func (b *bell) advise(name string) {
	b.t.Helper()
	path := filepath.Join(b.dir, "mal.json")
	must(b.t, os.WriteFile(path, fmt.Appendf(nil, `{"schema_version":"1.7.0","id":"MAL-0000-1","modified":"2026-05-01T00:00:00Z","details":"x","affected":[
		{"package":{"ecosystem":"PyPI","name":%q},"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"}]}]}]}`, name), 0o600))
	_, err := b.db.Import(b.t.Context(), advisory.Job{Path: path, Label: "x"}, func(advisory.Progress) {})
	must(b.t, err)
}

func (b *bell) installed(names ...string) {
	b.t.Helper()
	var disk provenance.Disk
	for _, name := range names {
		disk.Found.Packages = append(disk.Found.Packages, channel.InstalledPackage{Ecosystem: "python", Name: name, Version: "1.0", Path: "/usr/lib/" + name})
	}
	_, err := b.door.Installed(b.t.Context(), "sb1", disk)
	must(b.t, err)
}

const allowAll = "packages: { default: allow }"

// cause is a way to cause an alarm: with bad the alarm is there, without it the same is done
// in order.
type cause struct {
	name   string
	alarms int  // records
	count  int  // what they stand for; 0: as many
	noRun  bool // it is about no run, so no run's summary has it
	do     func(b *bell, bad bool)
}

func choose[T any](bad bool, yes, no T) T {
	if bad {
		return yes
	}
	return no
}

func causes() []cause {
	return []cause{
		{name: "a pinned file with another digest", alarms: 1, do: func(b *bell, bad bool) {
			b.begin(allowAll, b.pin("rich", "right"))
			b.get("rich", choose(bad, "wrong", "right"))
		}},
		{name: "a page with another digest than the pin's", alarms: 1, do: func(b *bell, bad bool) {
			b.begin(allowAll, b.pin("rich", "right"))
			page := door.IndexAsk{Sandbox: "sb1", Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich"}, IndexDigest: "d", Files: []door.File{b.file("rich", choose(bad, "wrong", "right")).File}}
			_, err := b.door.Index(b.t.Context(), page)
			must(b.t, err)
		}},
		{name: "a file that is known to be malicious", alarms: 1, do: func(b *bell, bad bool) {
			b.advise(choose(bad, "rich", "other"))
			b.begin(allowAll, nil)
			b.get("rich", "right")
		}},
		{name: "a release that becomes known to be malicious, looked at again", alarms: 1, do: func(b *bell, bad bool) {
			b.begin(allowAll, nil)
			b.get("rich", "right")
			b.advise(choose(bad, "rich", "other"))
			if err := b.door.Recheck(b.t.Context(), "sb1"); (err != nil) != bad {
				b.t.Errorf("the sandbox goes on: %v", err)
			}
		}},
		{name: "a release that becomes known to be malicious, found in the log", alarms: 1, do: func(b *bell, bad bool) {
			b.begin(allowAll, nil)
			b.get("rich", "right")
			b.advise(choose(bad, "rich", "other"))
			_, err := b.db.Review(b.t.Context(), b.log)
			must(b.t, err)
		}},
		{name: "a placeholder on its way to another host", alarms: 1, do: func(b *bell, bad bool) {
			b.begin("network_allowlist: [other.example]", nil)
			if !bad {
				_, err := b.door.HostRefused(b.t.Context(), door.HostRefusal{Sandbox: "sb1", Name: "other.example", Port: 443, Rule: door.RuleHostTLS, Reason: "it is no TLS"})
				must(b.t, err)
				return
			}
			host := door.HostPort{Sandbox: "sb1", Name: "other.example", Port: 443}
			_, err := b.door.Leaked(b.t.Context(), door.LeakAsk{HostPort: host, Request: exchange.Request{Method: "GET", Path: "/"}, Leak: exchange.Leak{Secret: "s", Where: "header X"}})
			must(b.t, err)
		}},
		{name: "a package on the disk that was never served", alarms: 1, do: func(b *bell, bad bool) {
			b.begin(allowAll, nil)
			b.get("rich", "right")
			b.installed(choose(bad, "stranger", "rich"))
		}},
		{name: "very many of these", alarms: provenance.MaxAlarms + 1, count: provenance.MaxAlarms + 7, do: func(b *bell, bad bool) {
			b.begin(choose(bad, allowAll, "packages: { default: allow, unaccounted: record }"), nil)
			var names []string
			for i := range provenance.MaxAlarms + 7 {
				names = append(names, "stranger-"+strconv.Itoa(i))
			}
			b.installed(names...)
		}},
		{name: "a sandbox that does not list its packages", alarms: 1, do: func(b *bell, bad bool) {
			b.begin(allowAll, nil)
			_, err := b.door.InventoryUnknown(b.t.Context(), "sb1", "it stalls", bad)
			must(b.t, err)
		}},
		{name: "a clock that jumps", alarms: 1, noRun: true, do: func(b *bell, bad bool) {
			b.begin(allowAll, nil)
			b.far.Store(int64(choose(bad, 30*24*time.Hour, 0)))
			b.get("rich", "right")
		}},
		{name: "a log that was rolled back, and somebody accepts it", alarms: 1, noRun: true, do: func(b *bell, bad bool) {
			m := memory{log: b.log, operator: quiet(), accepted: choose(bad, []string{"it is another one"}, nil)}
			must(b.t, m.recordRollback(b.t.Context()))
		}},
	}
}

// TestAnAlarmIsAnAlarmEverywhere: each way to cause an alarm, and whether the run's summary,
// the record, the metric, the operator's log, the webhook, the report and /v1 tell of it. Its
// control, the same without the cause, is told of nowhere.
func TestAnAlarmIsAnAlarmEverywhere(t *testing.T) {
	t.Parallel()
	for _, c := range causes() {
		for _, bad := range []bool{true, false} {
			t.Run(c.name+choose(bad, "", "/control"), func(t *testing.T) {
				t.Parallel()
				b := newBell(t)
				c.do(b, bad)
				want, count := choose(bad, c.alarms, 0), choose(bad, max(c.count, c.alarms), 0)
				b.expectRecords(want)
				if !c.noRun || !bad {
					b.expectSummary(count)
				}
				b.expectV1(want)
				// A later alarm is told later: when it has come, all before it has.
				last, err := b.log.Append(t.Context(), audit.Record{Kind: audit.KindDaemon, Outcome: audit.Alarm, Reason: "the last"})
				must(t, err)
				b.expectWebhook(want, last.Seq)
				b.expectMetric(count)
			})
		}
	}
}

func (b *bell) expectRecords(want int) {
	b.t.Helper()
	got, marked := 0, 0
	for r, err := range b.log.Records(b.t.Context(), audit.Filter{}) {
		must(b.t, err)
		if r.IsAlarm() {
			got++
			if r.Detail[audit.DetailAlarm] == "true" {
				marked++
			}
		}
	}
	if got != want || marked != want {
		b.t.Errorf("%d records are alarms, %d of them are marked; want %d", got, marked, want)
	}
}

func (b *bell) expectSummary(want int) {
	b.t.Helper()
	if _, err := b.door.Summary(b.t.Context(), "r1"); err != nil && want == 0 {
		return // there is no run
	}
	s, err := b.door.Summary(b.t.Context(), "r1")
	must(b.t, err)
	got := 0
	for _, a := range s.Alarms {
		got += a.Count
		if !a.Alarm {
			b.t.Errorf("the alarm %+v is not shown as one", a)
		}
	}
	if got != want {
		b.t.Errorf("the summary tells of %d alarms, want %d: %+v", got, want, s.Alarms)
	}
}

func (b *bell) expectV1(want int) {
	b.t.Helper()
	listed, asked := 0, 0
	for _, err := range b.v1.Records(b.t.Context(), client.RecordFilter{Alarms: true}) {
		must(b.t, err)
		listed++
	}
	for _, err := range b.v1.AuditQuery(b.t.Context(), api.AuditQuery{Flags: []string{"alarm"}}) {
		must(b.t, err)
		asked++
	}
	r, err := b.v1.AuditReport(b.t.Context(), "alarms", api.AuditQuestion{})
	must(b.t, err)
	if listed != want || asked != want || r.Found != want || len(r.Tables[0].Rows) != want {
		b.t.Errorf("/v1/audit/records has %d alarms, the query %d, the report %d (%d rows); want %d", listed, asked, r.Found, len(r.Tables[0].Rows), want)
	}
}

// expectWebhook waits until the alarm of record last was told.
func (b *bell) expectWebhook(want int, last uint64) {
	b.t.Helper()
	eventually(b.t, "the webhook is told of the last alarm", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.told) > 0 && b.told[len(b.told)-1].Alarm.Record == last
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.told)-1 != want {
		b.t.Errorf("the webhook was told of %d alarms, want %d", len(b.told)-1, want)
	}
	for _, a := range b.told {
		if a.Event != webhook.EventAlarm || a.Number != a.Alarm.Record+1 || a.Alarm.Reason == "" || (a.Alarm.Run != "") != slices.Contains(a.Owners, "user ann") {
			b.t.Errorf("it was told %+v", a)
		}
	}
}

var counted = regexp.MustCompile(`(?m)^cofferdam_alarms_total\{kind="([a-z]+)"\} (\d+)$`)

// expectMetric waits until the last alarm, which is of the daemon, is counted.
func (b *bell) expectMetric(want int) {
	b.t.Helper()
	got := map[string]int{}
	eventually(b.t, "the last alarm is counted", func() bool {
		w := httptest.NewRecorder()
		b.tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(b.t.Context(), http.MethodGet, "/metrics", nil))
		clear(got)
		for _, m := range counted.FindAllStringSubmatch(w.Body.String(), -1) {
			got[m[1]], _ = strconv.Atoi(m[2])
		}
		return got["daemon"] == 1
	})
	delete(got, "daemon")
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != want {
		b.t.Errorf("the metric counts %d alarms, want %d: %v", sum, want, got)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it did not come to this: %s", what)
		}
	}
}
