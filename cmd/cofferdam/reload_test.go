package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestReloadTellsOfNoFile: where there is none, nothing is said to be in it.
func TestReloadTellsOfNoFile(t *testing.T) {
	t.Parallel()
	const file = "/etc/cofferdam/config.yaml"
	for want, done := range map[string]api.ConfigReload{
		"There is no " + file:            {File: file},
		"Nothing has changed in " + file: {File: file, SHA256: "aa"},
		"count now: pool":                {File: file, SHA256: "aa", Reloaded: []string{"pool"}},
		"defaults now: pool":             {File: file, Reloaded: []string{"pool"}},
		"next start: listen":             {File: file, SHA256: "aa", AtStart: []string{"listen"}},
	} {
		var told bytes.Buffer
		if err := writeReload(&told, done); err != nil || !strings.Contains(told.String(), want) || strings.Count(told.String(), "\n") != 1 {
			t.Errorf("%q, %v: want %q", told.String(), err, want)
		}
	}
}
