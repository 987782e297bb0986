package exchange

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// endsByDefinition is what nearby.ends says, by looking at all that stands before.
func endsByDefinition(text []byte, at int) bool {
	before := text[max(0, at-reach):at]
	if bytes.IndexByte(before, 0x1b) >= 0 {
		return false
	}
	if begin := bytes.IndexAny(before, `&%\=`); begin >= 0 {
		for _, number := range []string{"1b", "1B", "27", "33"} {
			if bytes.Contains(before[begin:], []byte(number)) {
				return false
			}
		}
	}
	if text[at] != '}' {
		return true
	}
	for i := len(before) - 1; i >= max(0, len(before)-reach/2); i-- {
		if ending[before[i]] && before[i] != '}' {
			before = before[i:]
			break
		}
	}
	return !bytes.ContainsAny(before, "\\&%") && bytes.IndexByte(before, leadOfFullWidth) < 0 && !bytes.Contains(before, []byte("=5"))
}

// TestNearbyIsAsDefined for texts of what is of interest, near and at the bounds, in pieces and byte by byte.
func TestNearbyIsAsDefined(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"}", "]", "\"", "\\", "%", "&", "=", "=5", "1b", "1B", "27", "33", "\x1b", "\xef", "1", "b", "3", "a word ", "x"}
	said := map[bool]int{}
	for range 3_000 {
		var text []byte
		for len(text) < 3*reach {
			if r.IntN(4) == 0 {
				text = append(text, bytes.Repeat([]byte{'.'}, r.IntN(reach))...)
			}
			text = append(text, words[r.IntN(len(words))]...)
		}
		var one nearby
		for at, c := range text {
			want := ending[c] && endsByDefinition(text, at)
			if ending[c] {
				said[want]++
			}
			if one.take(c) != want {
				t.Fatalf("%q ends a piece: %v", text[:at+1], !want)
			}
		}
		var pieces nearby
		for from := 0; from < len(text); {
			to := min(from+1+r.IntN(reach), len(text))
			want := -1
			for at := range slices.Backward(text[from:to]) {
				if ending[text[from+at]] && endsByDefinition(text, from+at) {
					want = at + 1
					break
				}
			}
			if got := pieces.lastEnd(text[from:to]); got != want {
				t.Fatalf("%q|%q: %d, not %d", text[:from], text[from:to], got, want)
			}
			from = to
		}
	}
	if said[true] < 1_000 || said[false] < 1_000 {
		t.Errorf("the control: %v", said)
	}
}
