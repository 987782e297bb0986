package ui

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestColumns(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"WHAT", "NAME", "WHY"},
		{"refused", "python a-name-that-is-rather-long-for-a-name", "it is on no list and nobody wants it [packages.default]"},
		{"served", "é", ""},
	}
	for name, tt := range map[string]struct {
		width int
		want  []string
	}{
		"no terminal": {0, []string{
			"WHAT     NAME                                          WHY",
			"refused  python a-name-that-is-rather-long-for-a-name  it is on no list and nobody wants it [packages.default]",
			"served   é",
		}},
		"wide enough": {200, nil},
		"the last column goes on below": {92, []string{
			"WHAT     NAME                                          WHY",
			"refused  python a-name-that-is-rather-long-for-a-name  it is on no list and nobody wants it",
			"                                                       [packages.default]",
			"served   é",
		}},
		"others are cut": {50, []string{
			"WHAT     NAME             WHY",
			"refused  python a-nam...  it is on no list and",
			"                          nobody wants it",
			"                          [packages.default]",
			"served   é",
		}},
	} {
		want := tt.want
		if want == nil {
			want = Columns(rows, 0)
		}
		if diff := cmp.Diff(want, Columns(rows, tt.width)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// On any terminal that is not tiny every line fits, and the last column says all it said.
func TestColumnsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		word := rapid.StringMatching(`[a-zé.\[\]]{1,40}`)
		var rows [][]string
		n := rapid.IntRange(1, 4).Draw(rt, "columns")
		for range rapid.IntRange(1, 6).Draw(rt, "rows") {
			row := rapid.SliceOfN(word, n, n).Draw(rt, "row")
			row[n-1] = strings.Join(rapid.SliceOfN(word, 0, 12).Draw(rt, "last"), " ")
			rows = append(rows, row)
		}
		width := rapid.IntRange(n*(leastCell+gap)+leastLast, 200).Draw(rt, "width")
		lines := Columns(rows, width)
		for _, line := range lines {
			if utf8.RuneCountInString(line) > width {
				rt.Fatalf("%d: %q", width, line)
			}
		}
		squeezed := strings.Join(strings.Fields(strings.Join(lines, "")), "")
		for _, row := range rows {
			if last := strings.ReplaceAll(row[n-1], " ", ""); n == 1 && !strings.Contains(squeezed, last) {
				rt.Fatalf("%q is not in %q", last, squeezed)
			}
		}
	})
}
