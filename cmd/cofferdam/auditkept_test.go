package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestKeptCheckpointsAreOneLine: `audit verify --checkpoint FILE` says in one line what the kept
// checkpoints add, however many they are; of a log that is damaged behind them, not that it has only
// grown; and nothing where none was given, or none is the log's.
func TestKeptCheckpointsAreOneLine(t *testing.T) {
	t.Parallel()
	kept := func(sizes ...uint64) (all []audit.Milestone) {
		for _, n := range sizes {
			all = append(all, audit.Milestone{Size: n})
		}
		return all
	}
	for name, c := range map[string]struct {
		kept  []audit.Milestone
		sound bool
		want  string
	}{
		"none":              {nil, true, ""},
		"none of a damaged": {nil, false, ""},
		"one":               {kept(12), true, "the checkpoint of 12 records that you kept: since then the log has only grown"},
		"one of one record": {kept(1), true, "the checkpoint of 1 record that you kept: since then the log has only grown"},
		"many":              {kept(3, 12, 7), true, "3 checkpoints that you kept, of 3 to 12 records: since each of them the log has only grown"},
		"two of the same":   {kept(5, 5), true, "2 checkpoints that you kept, of 5 to 5 records: since each of them the log has only grown"},
		"one of a damaged":  {kept(12), false, "the checkpoint of 12 records that you kept: the first 12 records are as then"},
		"the first record":  {kept(1), false, "the checkpoint of 1 record that you kept: the first record is as then"},
		"many of a damaged": {kept(3, 12), false, "2 checkpoints that you kept, of 3 to 12 records: the first 12 records are as then"},
	} {
		var lines []string
		for line := range strings.Lines(verdictText(audit.Verdict{Kept: c.kept, Sound: c.sound}, time.Now())) {
			if strings.Contains(line, "you kept") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		got := strings.Join(lines, "\n")
		if c.want != "" {
			c.want = "yours        " + c.want
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
