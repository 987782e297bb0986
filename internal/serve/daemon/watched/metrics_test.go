package watched_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon/watched"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

func newTelemetry(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(telemetry.Config{Version: "1", Log: quiet()})
	must(t, err)
	return tel
}

func has(t *testing.T, tel *telemetry.Telemetry, lines ...string) {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Metrics().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, line := range lines {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("no %q in the metrics", line)
		}
	}
	if t.Failed() {
		t.Log(w.Body)
	}
}

// refusing is a log that can't be written.
type refusing struct{ audit.Log }

func (refusing) Append(_ context.Context, r audit.Record) (audit.Record, error) {
	return r, errors.New("no space")
}

func TestWhatIsCountedOfTheLog(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	log, code := watched.Log(&approvaltest.Log{}, tel), 3
	for _, r := range []audit.Record{
		{Kind: audit.KindPackage, Outcome: audit.Served, Ecosystem: "node"},
		{Kind: audit.KindPackage, Outcome: audit.Withheld, Ecosystem: "node"},
		{Kind: audit.KindCommand, Outcome: audit.Finished, Exit: &code},
		{Kind: audit.KindCommand, Outcome: audit.Finished, Exit: new(int)},
		{Kind: audit.KindSandbox, Outcome: audit.Failed},
	} {
		_, err := log.Append(t.Context(), r)
		must(t, err)
	}
	if _, err := watched.Log(refusing{}, tel).Append(t.Context(), audit.Record{}); err == nil {
		t.Error("a refused record is none")
	}
	has(t, tel,
		`cofferdam_decisions_total{ecosystem="node",outcome="served"} 1`, `cofferdam_decisions_total{ecosystem="node",outcome="withheld"} 1`,
		`cofferdam_commands_finished_total{result="ok"} 1`, `cofferdam_commands_finished_total{result="failed"} 1`,
		`cofferdam_log_records_total{kind="sandbox",outcome="failed"} 1`,
		`cofferdam_log_append_seconds_count 5`, `cofferdam_log_append_failures_total 1`,
	)
}

// noting is a journal that takes what has an id.
type noting struct{ sandbox.Journal }

func (noting) Move(_ context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	if e.Info.ID == "" {
		return ev, errors.New("no space")
	}
	return ev, nil
}

func (noting) Put(context.Context, sandbox.Entry) error { return nil }

func TestWhatIsCountedOfTheJournal(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	j := watched.Journal(noting{}, tel)
	_, err := j.Move(t.Context(), sandbox.Entry{Info: sandbox.Info{ID: "sb1"}}, sandbox.Event{To: sandbox.Running})
	must(t, err)
	must(t, j.Put(t.Context(), sandbox.Entry{}))
	if _, err := j.Move(t.Context(), sandbox.Entry{}, sandbox.Event{To: sandbox.Running}); err == nil {
		t.Error("a refused entry is none")
	}
	has(t, tel, `cofferdam_sandbox_states_total{state="running"} 1`, `cofferdam_journal_write_seconds_count 2`, `cofferdam_journal_failures_total 1`)
}
