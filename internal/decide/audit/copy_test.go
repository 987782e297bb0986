package audit

import (
	"slices"
	"strings"
	"testing"
)

// TestCopyRank: what says that something is there is looked at before that.
func TestCopyRank(t *testing.T) {
	t.Parallel()
	order := []string{checkpointsName, treeName, segmentName(0), personalName(0)}
	if !slices.IsSortedFunc(order, func(a, b string) int { return CopyRank(a) - CopyRank(b) }) || CopyRank(order[0]) == CopyRank(order[1]) {
		t.Errorf("the lengths are not read in the order %v", order)
	}
	for _, work := range []string{"lock", "000000000000.personal.tmp", ".new"} {
		if !IsWork(work) {
			t.Errorf("%s is taken for a part of the log", work)
		}
	}
}

// TestWholeLines: half a line is left off what is appended to in lines, and of nothing else.
func TestWholeLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		base, text string
		whole      int
	}{
		{segmentName(0), "", 0},
		{segmentName(0), "one\ntwo\n", 8},
		{segmentName(0), "one\ntw", 4},
		{personalName(0), "one\n" + long, 4},
		{personalName(0), long + "\n" + long, len(long) + 1},
		{segmentName(0), long, 0},
		{sealedName(0), "one\ntw", 6},
		{treeName, "\nx", 2},
	} {
		if got, err := WholeLines(c.base, strings.NewReader(c.text), int64(len(c.text))); err != nil || got != int64(c.whole) {
			t.Errorf("%s %.10q: %d, %v; want %d", c.base, c.text, got, err, c.whole)
		}
	}
}
