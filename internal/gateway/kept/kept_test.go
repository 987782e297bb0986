package kept_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/flight"
	"github.com/cofferdam-dev/cofferdam/internal/gateway/kept"
)

type name string

// String implements kept.Key.
func (n name) String() string { return string(n) }

func TestMemory(t *testing.T) {
	t.Parallel()
	m := kept.NewMemory[name, int](100)
	m.Put("a", 1, 40)
	m.Put("b", 2, 40)
	m.Put("large", 9, 101)
	if _, ok := m.Get("large"); ok {
		t.Error("a value is kept that alone is too large")
	}
	if v, ok := m.Get("a"); !ok || v != 1 {
		t.Errorf("a: %d, %v", v, ok)
	}
	m.Put("c", 3, 40) // b is the least recently used
	if _, ok := m.Get("b"); ok {
		t.Error("b is still there")
	}
	m.Put("a", 4, 10)
	m.Put("d", 5, 50)
	for key, want := range map[name]int{"a": 4, "c": 3, "d": 5} {
		if v, ok := m.Get(key); !ok || v != want {
			t.Errorf("%s: %d, %v", key, v, ok)
		}
	}
	m.Clear()
	if _, ok := m.Get("a"); ok {
		t.Error("a is there after Clear")
	}
}

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
		return kept.NewFindings(kept.NewMemory[name, int](100), disk, g, func(name, int) int64 { return 1 })
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
