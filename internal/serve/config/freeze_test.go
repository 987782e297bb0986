package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestFreeze(t *testing.T) {
	def := Freeze{After: Duration(3 * time.Second), MaxBytes: 20 << 30, MaxCount: 50, Reserve: 2 << 30}
	for text, want := range map[string]Freeze{
		"":                           def,
		"freeze: { after: 1m }":      {After: Duration(time.Minute), MaxBytes: def.MaxBytes, MaxCount: 50, Reserve: def.Reserve},
		"freeze: { max_bytes: 7 }":   {After: def.After, MaxBytes: 7, MaxCount: 50, Reserve: def.Reserve},
		"freeze: { max_count: 2 }":   {After: def.After, MaxBytes: def.MaxBytes, MaxCount: 2, Reserve: def.Reserve},
		"freeze: { reserve: 10GiB }": {After: def.After, MaxBytes: def.MaxBytes, MaxCount: 50, Reserve: 10 << 30},
	} {
		got, err := load(t, text)
		if err != nil || got.Freeze != want {
			t.Errorf("%s: %+v, %v", text, got.Freeze, err)
		}
	}
	for _, text := range []string{
		"freeze: { max_bytes: 20GB }", "freeze: { max_bytes: -1 }", "freeze: { max_bytes: 0 }", "freeze: { max_bytes: 9999999999TiB }",
		"freeze: { after: soon }", "freeze: { max_count: -1 }", "freeze: { max_files: 1 }", "freeze: { reserve: GiB }",
	} {
		if _, err := load(t, text); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "config.yaml") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
