package exchange

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNeedlesAreFoundAsOneByOne: whatever begins as what else, all are found that are there, and the longest that has begun.
func TestNeedlesAreFoundAsOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, 3+random.IntN(most))
		for i := range b {
			b[i] = "ab\x00"[random.IntN(3)]
		}
		return string(b)
	}
	found := 0
	for range 3_000 {
		n := &needles{}
		for i := range 1 + random.IntN(12) {
			n.all = append(n.all, needle{word(6), fmt.Sprint(i % 3)})
		}
		n.buildIndex()
		text := []byte(word(40))
		var got, want []string
		n.findNeedles(text, func(from, to int, of string) { got = append(got, fmt.Sprint(from, to, of)) })
		begun := 0
		for at := range text {
			for _, one := range n.all {
				if bytes.HasPrefix(text[at:], []byte(one.text)) {
					want = append(want, fmt.Sprint(at, at+len(one.text), one.of))
				}
				if rest := text[at:]; begun == 0 && len(rest) < len(one.text) && strings.HasPrefix(one.text, string(rest)) {
					begun = len(rest)
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || n.lengthBegun(text) != begun {
			t.Fatalf("%q in %q: %v and %d, not %v and %d", n.all, text, got, n.lengthBegun(text), want, begun)
		}
		found += len(want)
	}
	if found == 0 {
		t.Error("nothing was there")
	}
}

// TestManyThatBeginAlikeCostLittle: whoever is inside may know how thousands of values begin, and have that said all the
// time. The control has nine of them.
func TestManyThatBeginAlikeCostLittle(t *testing.T) {
	values := []string{"short-one"}
	for i := range 4_352 {
		values = append(values, fmt.Sprintf("github_pat_%08x%08x", i*2_654_435_761, i))
	}
	text := bytes.Repeat([]byte("github_pat_"), 2_000)
	best := func(some []string) time.Duration {
		n, least := newNeedles(map[string][]string{"a": some}), time.Hour
		for range 5 {
			begin := time.Now()
			n.findNeedles(text, func(int, int, string) {})
			least = min(least, time.Since(begin))
		}
		return least
	}
	if all, few := best(values), best(values[:9]); all > 50*few {
		t.Errorf("to look for %d takes %s, and for 9 %s", len(values), all, few)
	} else {
		t.Logf("to look for %d takes %s, and for 9 %s", len(values), all, few)
	}
}
