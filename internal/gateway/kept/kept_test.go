package kept_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/kept"
	"github.com/cofferdam-dev/cofferdam/internal/lru"
)

type name string

// String implements kept.Key.
func (n name) String() string { return string(n) }

// TestFindings: a value is found out once, and a restart finds it on the disk; an
// error is found out again; two users of one group and one key are two.
func TestFindings(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir(), cache.Limits{Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	g := flight.New(log)
	defer g.Wait()
	open := func(shelf string) *kept.Findings[name, int] {
		disk, err := kept.NewDisk(store, shelf, 0, kept.JSON[name, int](), log, "a number")
		if err != nil {
			t.Fatal(err)
		}
		return kept.NewFindings(lru.New[name, int](100), disk, g, func(name, int) int64 { return 1 })
	}
	found := 0
	get := func(f *kept.Findings[name, int], key name, value int, err error) (int, error) {
		return f.Get(t.Context(), key, func(context.Context) (int, error) {
			found++
			return value, err
		})
	}
	first, another := open("first"), open("another")
	odd := errors.New("odd")
	if _, err := get(first, "a", 1, odd); !errors.Is(err, odd) {
		t.Error(err)
	}
	for _, f := range []*kept.Findings[name, int]{first, first, open("first")} {
		if v, err := get(f, "a", 2, nil); v != 2 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	}
	if v, err := get(another, "a", 3, nil); v != 3 || err != nil {
		t.Errorf("of another: %d, %v", v, err)
	}
	if found != 3 { // the error, the value, the other's
		t.Errorf("found out %d times", found)
	}
}
