package httpapi

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestPositions: what is concealed for a token can be revealed for it, after a restart too,
// and is nothing to another one.
func TestPositions(t *testing.T) {
	t.Parallel()
	p, again := newPositions(bytes.Repeat([]byte{7}, 32)), newPositions(bytes.Repeat([]byte{7}, 32))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, 1<<positionBits+5).Draw(t, "number")
		told := p.conceal("ann", n)
		if got := again.reveal("ann", told); got != n {
			t.Fatalf("%d is told as %d, which is read as %d", n, told, got)
		}
		if n > 0 && n < 1<<positionBits && (told == 0 || told >= 1<<positionBits) {
			t.Fatalf("%d is told as %d", n, told)
		}
	})
}

// TestPositionsTellNothing: two numbers that are neighbours are told as near to each other,
// and in the same order, as often as any two.
func TestPositionsTellNothing(t *testing.T) {
	t.Parallel()
	p := newPositions(nil)
	const pairs = 2000
	grown, near, same := 0, 0, 0
	for n := range uint64(pairs) {
		a, b := p.conceal("ann", n+1), p.conceal("ann", n+2)
		if b > a {
			grown++
		}
		if max(a, b)-min(a, b) < 1<<(positionBits-7) { // 1 in 64 or so by chance
			near++
		}
		if a == p.conceal("bob", n+1) {
			same++
		}
	}
	if grown < pairs/2-200 || grown > pairs/2+200 || near > pairs/20 || same > 0 {
		t.Errorf("of %d pairs %d grow, %d are near, %d are told another token as well", pairs, grown, near, same)
	}
}
