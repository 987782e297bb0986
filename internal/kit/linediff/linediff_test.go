package linediff

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// patched applies a difference in unified form as strictly as can be.
func patched(t *testing.T, before []string, diff string) string {
	t.Helper()
	var out strings.Builder
	at := 0
	same := func(line string) {
		if at >= len(before) || before[at] != line {
			t.Fatalf("line %d is not %q", at+1, line)
		}
		at++
	}
	for i, line := range strings.SplitAfter(diff, "\n") {
		switch {
		case line == "" || i < 2:
		case strings.HasPrefix(line, "@@"):
			var from int
			rest := strings.TrimPrefix(line, "@@ -")
			if _, err := fmt.Sscanf(rest, "%d", &from); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Fields(rest)[0], ",0") {
				from--
			}
			for ; at < from; at++ {
				out.WriteString(before[at])
			}
		case line[0] == ' ':
			same(line[1:])
			out.WriteString(line[1:])
		case line[0] == '-':
			same(line[1:])
		case line[0] == '+':
			out.WriteString(line[1:])
		default:
			t.Fatalf("%q", line)
		}
	}
	return out.String() + strings.Join(before[at:], "")
}

// TestUnified: what it says makes of the one text the other, whatever they are.
func TestUnified(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most, letters int) []string {
		var all []string
		for range random.IntN(most + 1) {
			all = append(all, string(rune('a'+random.IntN(letters)))+"\n")
		}
		return all
	}
	for range 3000 {
		before, after := text(30, 1+random.IntN(26)), text(30, 1+random.IntN(26))
		if random.IntN(2) == 0 { // much is the same
			after = append(append(append([]string{}, before[:len(before)/2]...), after[:len(after)/4]...), before[len(before)/2:]...)
		}
		diff := unified("x", "y", before, after)
		if got, want := patched(t, before, diff), strings.Join(after, ""); got != want {
			t.Fatalf("%q to %q:\n%s\ngives %q", before, after, diff, got)
		}
		if (diff == "") != (strings.Join(before, "") == strings.Join(after, "")) {
			t.Fatalf("%q", diff)
		}
	}
	got := unified("x", "y", strings.SplitAfter("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12", "\n"), strings.SplitAfter("1\n2\n3\n4\n5\n6\nseven\n8\n9\n10\n11\n12\n13", "\n"))
	if want := "--- x\n+++ y\n@@ -4,9 +4,10 @@\n 4\n 5\n 6\n-7\n+seven\n 8\n 9\n 10\n 11\n-12+12\n+13"; got != want {
		t.Errorf("%q", got)
	}
}

// TestHostileTexts do not hold up who looks: a
// comparison whose time grows with the square of their number, or faster, does not end here.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	few := func(seed uint64) []string { // lines that are neither rare nor frequent
		of := rand.New(rand.NewPCG(seed, 0))
		all := make([]string, (256<<10)/3)
		for i := range all {
			all[i] = string(rune(' '+of.IntN(150))) + "\n"
		}
		return all
	}
	shuffled := func(n int) []string { // lines that there are once
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("%x\n", i)
		}
		random.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all
	}
	// A line that there is once only in what is behind the one before: each is found on a
	// level of its own.
	chain := func(n int, between ...string) []string {
		all := []string{"1\n", "0\n"}
		for i := range n {
			all = append(append(all, between...), fmt.Sprintf("%d\n", i+2), fmt.Sprintf("%d\n", i+1))
		}
		return append(all, between...)
	}
	turned := func(n int, turn bool) []string {
		var all []string
		for i := range n {
			a, b := fmt.Sprintf("a%x\n", i), fmt.Sprintf("b%x\n", i)
			if turn {
				a, b = b, a
			}
			all = append(all, a, b, "same\n")
		}
		return all
	}
	// Blocks that are the same, each shorter than the one before: who looks for the longest
	// finds them one by one, each time in all that is left.
	blocks := func(own string) []string {
		of := rand.New(rand.NewPCG(5, 6))
		var all []string
		for size := 400; size > 0; size-- {
			for range size {
				all = append(all, string(rune(' '+of.IntN(150)))+"\n")
			}
			all = append(all, own)
		}
		return all
	}
	for name, pair := range map[string][2][]string{
		"few lines":    {few(1), few(2)},
		"blocks":       {blocks("mine\n"), blocks("theirs\n")},
		"lines once":   {shuffled(40_000), shuffled(40_000)},
		"one by one":   {chain(40_000), chain(40_000, "-\n")},
		"lines turned": {turned(15_000, false), turned(15_000, true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diff := unified("x", "y", pair[0], pair[1])
			if patched(t, pair[0], diff) != strings.Join(pair[1], "") {
				t.Error("it is not the difference")
			}
		})
	}
}
