package e2b

import (
	"strings"
	"testing"
)

// TestAnAlarmDoesNotCountOthersRecords: what a token is told of its two alarms does not depend on how many
// records all others made between them.
func TestAnAlarmDoesNotCountOthersRecords(t *testing.T) {
	t.Parallel()
	told := func(others int) (lines []string) {
		log := &alarmLog{}
		news := newAlarmNews(log)
		news.watchAlarms(boxID, func(string) bool { return true })
		log.add(boxID, "first")
		for range others {
			log.add("sb-other", "another's")
		}
		log.add(boxID, "second")
		lines, _ = news.newAlarms(t.Context(), boxID)
		if len(lines) != 2 || !strings.Contains(lines[1], "python six 1.16.0: second") {
			t.Fatalf("INCONCLUSIVE: %q", lines)
		}
		return lines
	}
	quiet, busy := told(0), told(1000)
	if quiet[1] != busy[1] {
		t.Errorf("with no record of others between its two alarms a token reads\n%s\nand with 1,000\n%s", quiet[1], busy[1])
	}
}
