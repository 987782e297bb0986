package exchange

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// endsByDefinition is what nearby.endsPiece says, by looking at all that stands before.
func endsByDefinition(text []byte, at int) bool {
	var seen []byte
	var places []int // in the text, of each of them
	for i, c := range text[:at] {
		if ' ' <= c && c <= '~' || c == 0x1b || c == leadOfFullWidth {
			seen, places = append(seen, c), append(places, i)
		}
	}
	within := func(most int) []byte { return seen[max(0, len(seen)-most):] }
	numbered := func(most int) bool { return hasNumber(seen, places, max(0, len(seen)-most)) }
	before := within(reach)
	if bytes.IndexByte(before, 0x1b) >= 0 || numbered(reach) || numbered(farReach) && bytes.ContainsAny(within(reach/2), `&%\=`) {
		return false
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

// hasNumber tells whether an escape begins from a byte on to which the number of an ESC may belong.
func hasNumber(seen []byte, places []int, from int) bool {
	for begin := from; begin < len(seen); begin++ {
		if bytes.IndexByte([]byte(`&%\=`), seen[begin]) < 0 {
			continue
		}
		for i := begin + 1; i < min(len(seen), begin+maxEscape) && bytes.IndexByte([]byte("&%\\=]>\"'),"), seen[i]) < 0; i++ {
			if number := string(seen[i-1 : i+1]); slices.Contains([]string{"1b", "1B", "27", "33"}, number) && places[i] == places[i-1]+1 {
				return true
			}
		}
	}
	return false
}

// TestNearbyIsAsDefined for texts of what is of interest, near and at the bounds, in pieces and byte by byte.
func TestNearbyIsAsDefined(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	words := []string{"}", "]", "\"", "\\", "%", "&", "=", "=5", "1b", "1B", "27", "33", "\x1b", "\xef", "\u200b", "\n", "1", "b", "3", "a word ", "x"}
	said := map[bool]int{}
	for range 500 {
		var text []byte
		for len(text) < 2*farReach {
			if r.IntN(4) == 0 {
				text = append(text, bytes.Repeat([]byte{".x\xc2"[r.IntN(3)]}, r.IntN(reach))...)
			}
			text = append(text, words[r.IntN(len(words))]...)
		}
		var one nearby
		for at, c := range text {
			want := ending[c] && endsByDefinition(text, at)
			if ending[c] {
				said[want]++
			}
			if one.takeByte(c) != want {
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
