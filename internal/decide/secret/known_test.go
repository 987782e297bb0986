package secret_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestOtherRunsDoNotPushAValueOut: a value that a run has which lives, and which it goes on to use, is
// looked for by every other run of the same secret, however many have had one of their own since. The
// control: as long as they are few, it is.
func TestOtherRunsDoNotPushAValueOut(t *testing.T) {
	for _, others := range []int{200, 300} {
		clock := &at{time.Unix(1e9, 0)}
		b := broker(&counted{}, clock)
		first := b.Lease()
		if v, err := first.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != "the-secret-1" {
			t.Fatalf("%q, %v", v.Reveal(), err)
		}
		for range others {
			one := b.Lease()
			if _, err := one.Value(t.Context(), "one", "api.example"); err != nil {
				t.Fatal(err)
			}
			one.End()
		}
		if v, err := first.Value(t.Context(), "one", "api.example"); err != nil || v.Reveal() != "the-secret-1" {
			t.Fatalf("INCONCLUSIVE: the first run uses %q, %v", v.Reveal(), err)
		}
		if had := texts(t, b.Lease(), secret.Want{Name: "one", Host: "api.example"}); !slices.Contains(had, "the-secret-1") {
			t.Errorf("after %d other runs a new one does not look for the value that the first one uses (%d values are known)", others, len(had))
		}
	}
}

// TestLivingRunsHaveABound: past it a run is told so and gets none, and none of the others' is forgotten. Once
// one has ended the next gets its own.
func TestLivingRunsHaveABound(t *testing.T) {
	const most = 4_096
	b := broker(&counted{}, &at{time.Unix(1e9, 0)})
	first := b.Lease()
	get := func(l *secret.Lease) error {
		_, err := l.Value(t.Context(), "one", "api.example")
		return err
	}
	for i := range most {
		l := first
		if i > 0 {
			l = b.Lease()
		}
		if err := get(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := get(b.Lease()); err == nil || !strings.Contains(fault.Sentence(err, ""), "the runs that live have had 4096 values") {
		t.Errorf("one more: %v", err)
	}
	second := b.Lease()
	second.Inherit(first)
	first.End()
	if err := get(b.Lease()); err == nil {
		t.Error("one more, and a copy of the one that has ended has its value")
	}
	second.End()
	if err := get(b.Lease()); err != nil {
		t.Errorf("once one has ended: %v", err)
	}
}

// TestSince: whoever has heard up to a moment hears of what is lent later, once, whichever run is lent it, and of
// its secrets alone.
func TestSince(t *testing.T) {
	b := broker(&counted{}, &at{time.Unix(1e9, 0)})
	one, other, wants := b.Lease(), b.Lease(), []secret.Want{{Name: "one", Host: "api.example"}}
	heard := func(since uint64, wants []secret.Want) (all []string, now uint64) {
		values, now, _ := one.Since(since, wants, 0)
		for _, v := range values["one"] {
			all = append(all, v.Reveal())
		}
		return all, now
	}
	if all, _ := heard(0, wants); len(all) > 0 {
		t.Errorf("before any: %q", all)
	}
	if _, err := other.Value(t.Context(), "one", "api.example"); err != nil {
		t.Fatal(err)
	}
	all, now := heard(0, wants)
	if !slices.Equal(all, []string{"the-secret-1"}) {
		t.Errorf("%q", all)
	}
	if all, _ := heard(0, nil); len(all) > 0 {
		t.Errorf("of a secret that it does not get: %q", all)
	}
	if all, again := heard(now, wants); len(all) > 0 || again != now {
		t.Errorf("heard before: %q", all)
	}
	other.End()
	if _, err := b.Lease().Value(t.Context(), "one", "api.example"); err != nil {
		t.Fatal(err)
	}
	if all, _ := heard(now, wants); !slices.Equal(all, []string{"the-secret-2"}) {
		t.Errorf("since then: %q", all)
	}
}

// TestSinceInParts: a bounded answer says that there are more, and all come, each once, by asking on.
func TestSinceInParts(t *testing.T) {
	const many = 100
	b := broker(&counted{}, &at{time.Unix(1e9, 0)})
	wants := []secret.Want{{Name: "one", Host: "api.example"}}
	for range many {
		if _, err := b.Lease().Value(t.Context(), "one", "api.example"); err != nil {
			t.Fatal(err)
		}
	}
	l, seen := b.Lease(), map[string]int{}
	moment, asks := uint64(0), 0
	for more := true; more; asks++ {
		var values map[string][]secret.Value
		values, moment, more = l.Since(moment, wants, 64)
		size := 0
		for _, v := range values["one"] {
			seen[v.Reveal()]++
			size += len(v.Reveal())
		}
		if size == 0 || size > 64 {
			t.Fatalf("a part of %d bytes", size)
		}
	}
	for text, times := range seen {
		if times != 1 {
			t.Errorf("%s: %d times", text, times)
		}
	}
	if len(seen) != many || asks < many*len("the-secret-1")/64 {
		t.Errorf("%d values in %d parts", len(seen), asks)
	}
}

// lasting gives values that end after an hour.
type lasting struct{ counted }

func (l *lasting) Fetch(ctx context.Context) (secret.Value, error) {
	v, err := l.counted.Fetch(ctx)
	if err != nil {
		return v, err
	}
	return v.For(time.Hour)
}

// TestWhatHasEndedTakesNoPlace: runs that live long have values that have ended; they keep none from the
// next one. The control: those that are good do.
func TestWhatHasEndedTakesNoPlace(t *testing.T) {
	const most = 4_096
	for _, ended := range []bool{true, false} {
		clock := &at{time.Unix(1e9, 0)}
		b := broker(&lasting{}, clock)
		for range most {
			if _, err := b.Lease().Value(t.Context(), "one", "api.example"); err != nil {
				t.Fatal(err)
			}
		}
		if ended {
			clock.Time = clock.Add(3 * time.Hour)
		}
		if _, err := b.Lease().Value(t.Context(), "one", "api.example"); (err == nil) != ended {
			t.Errorf("ended: %v: %v", ended, err)
		}
	}
}

// TestMomentsGoOnInAnotherProcess: a gateway that outlives a daemon asks the next one since a moment of the former, and is told of
// all that is known there.
func TestMomentsGoOnInAnotherProcess(t *testing.T) {
	clock, since := &at{time.Unix(1e9, 0)}, uint64(0)
	for range 3 {
		l := broker(&counted{}, clock).Lease()
		if _, err := l.Value(t.Context(), "one", "api.example"); err != nil {
			t.Fatal(err)
		}
		values, upTo, more := l.Since(since, []secret.Want{{Name: "one"}}, 0)
		if len(values["one"]) != 1 || more {
			t.Errorf("since %d: %v", since, values)
		}
		if again, _, _ := l.Since(upTo, []secret.Want{{Name: "one"}}, 0); len(again) > 0 {
			t.Errorf("it is told again: %v", again)
		}
		since = upTo
		clock.Time = clock.Add(time.Second)
	}
}
