package daemon

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/telemetry"
)

// recorder takes records, and tells what counted when each came.
type recorder struct {
	audit.Log

	d    *Daemon
	fail error
	had  []time.Duration
	got  []audit.Record
}

func (r *recorder) Append(_ context.Context, one audit.Record) (audit.Record, error) {
	r.had, r.got = append(r.had, time.Duration(r.d.settings.getConfig().IdleTimeout)), append(r.got, one)
	return one, r.fail
}

// TestReloadIsOnRecordBeforeItCounts: nothing counts of a file that is wrong or whose record can't be written, and what is as
// it was is no record.
func TestReloadIsOnRecordBeforeItCounts(t *testing.T) {
	was, now := config.Config{IdleTimeout: config.Duration(time.Minute)}, config.Config{IdleTimeout: config.Duration(time.Hour)}
	now.Log.Level, now.Log.Format = "debug", "json"
	failed := errors.New("no")
	level := telemetry.NewLevel("info")
	var wrong error
	d := &Daemon{settings: settings{now: was}, sandboxes: sandbox.New(sandbox.Config{Log: quiet()}), opts: Options{
		Paths: config.Paths{State: t.TempDir(), Runtime: t.TempDir()}, Log: quiet(), Level: level,
		ReadConfig: func() (config.Config, config.Source, error) {
			return now, config.Source{Path: "/c", SHA256: "12"}, wrong
		},
	}}
	defer d.sandboxes.Close()
	records := &recorder{d: d}
	d.records = records
	for _, c := range []struct{ wrong, fail error }{{wrong: failed}, {fail: failed}} {
		wrong, records.fail = c.wrong, c.fail
		if _, err := reload(t.Context(), d, "ann"); !errors.Is(err, failed) || d.settings.getConfig().IdleTimeout != was.IdleTimeout || level.Level() != slog.LevelInfo {
			t.Errorf("%+v: %v, and it counts", c, err)
		}
	}
	wrong, records.fail = nil, nil
	now.DefaultTemplate = "none" // no start would take it
	if _, err := reload(t.Context(), d, "ann"); err == nil || !strings.Contains(err.Error(), `default_template is "none"`) {
		t.Errorf("a default template that there is not: %v", err)
	}
	now.DefaultTemplate, now.Pool = "", []config.Pool{{Template: "none", Size: 1}}
	if _, err := reload(t.Context(), d, "ann"); err == nil || !strings.Contains(err.Error(), `pool[0].template is "none", and there is no such template; known are auto, `) || d.settings.getConfig().IdleTimeout != was.IdleTimeout {
		t.Errorf("a template that there is not: %v", err)
	}
	now.Pool, records.got, records.had = nil, nil, nil
	for range 2 {
		if _, err := reload(t.Context(), d, "ann"); err != nil {
			t.Fatal(err)
		}
		now.Log.Format = "" // as it was
	}
	if d.settings.getConfig().IdleTimeout != now.IdleTimeout || level.Level() != slog.LevelDebug {
		t.Error("it does not count")
	}
	if len(records.got) != 1 || records.had[0] != time.Minute || records.got[0].User != "ann" || records.got[0].Detail["reloaded"] != "idle_timeout log.level" || records.got[0].Detail["at_start"] != "log.format" || records.got[0].Detail["sha256"] != "12" {
		t.Errorf("on record is %+v, while %v counted", records.got, records.had)
	}
}
