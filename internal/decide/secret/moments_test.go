package secret

import (
	"fmt"
	"testing"
	"time"
)

// TestMomentsOfAnotherBrokerTellNothing: a gateway was told of moments of a broker that is no more, wherever those lie to the ones
// of the new broker: it was made within the same second, after a burst, or with the clock set back, and has learned fewer values, as
// many or more. Each of its values is told, once.
func TestMomentsOfAnotherBrokerTellNothing(t *testing.T) {
	names := []string{"one"}
	filled := func(now time.Time, count int, word string) *known {
		k := newKnown(func() time.Time { return now })
		for i := range count {
			k.learnValue("one", had{value: Value{text: fmt.Sprint(word, "-", i)}})
		}
		return &k
	}
	begin := time.Unix(1_800_000_000, 0)
	for _, later := range []time.Duration{-time.Minute, 0, 500 * time.Millisecond, 10 * time.Second} {
		for _, before := range []int{0, 1, 3, 5, 60} {
			for _, learned := range []int{1, 3, 4, 50} {
				_, told, _ := filled(begin, before, "old").valuesSince(0, names, 0)
				next := filled(begin.Add(later), learned, "fresh")
				got := 0
				for since, more := told, true; more; {
					var values map[string][]Value
					values, since, more = next.valuesSince(since, names, 32)
					if got += len(values["one"]); since == told {
						t.Fatal("it goes round in circles")
					}
				}
				if got != learned {
					t.Errorf("made %v later, %d values before: told are %d of %d", later, before, got, learned)
				}
			}
		}
	}
}

// TestNoMomentIsBeforeTheFirst or behind the last: whoever names one is told everything, one below and above as well.
func TestNoMomentIsBeforeTheFirst(t *testing.T) {
	k := newKnown(time.Now)
	for i := range 3 {
		k.learnValue("one", had{value: Value{text: fmt.Sprint("value-", i)}})
	}
	for since, want := range map[uint64]int{0: 3, k.first - 1: 3, k.first: 3, k.first + 1: 2, k.first + 2: 1, k.moment: 0, k.moment + 1: 3, 1<<64 - 1: 3} {
		values, upTo, more := k.valuesSince(since, []string{"one"}, 0)
		if len(values["one"]) != want || upTo != k.moment || more {
			t.Errorf("since %d of %d to %d: %v, up to %d", since, k.first, k.moment, values, upTo)
		}
	}
	if k.moment>>40 != 0 {
		t.Errorf("a moment takes more bits than there are for it: %x", k.moment)
	}
}
