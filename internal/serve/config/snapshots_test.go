package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestSnapshots(t *testing.T) {
	def := Snapshots{MaxBytes: 50 << 30, MaxCount: 500, Reserve: 2 << 30, ColdAfter: Duration(10 * time.Minute)}
	for text, want := range map[string]Snapshots{
		"":                            def,
		"snapshots: { max_count: 2 }": {MaxBytes: def.MaxBytes, MaxCount: 2, Reserve: def.Reserve, ColdAfter: def.ColdAfter},
		"snapshots: { max_bytes: 1GiB, reserve: 7, cold_after: 1h }": {MaxBytes: 1 << 30, MaxCount: 500, Reserve: 7, ColdAfter: Duration(time.Hour)},
	} {
		got, err := load(t, text)
		if err != nil || got.Snapshots != want {
			t.Errorf("%s: %+v, %v", text, got.Snapshots, err)
		}
	}
	for _, text := range []string{"snapshots: { max_count: -1 }", "snapshots: { max_bytes: 0 }", "snapshots: { cold_after: soon }", "snapshots: { what: 1 }"} {
		if _, err := load(t, text); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "config.yaml") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
