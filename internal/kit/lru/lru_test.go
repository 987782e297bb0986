package lru_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
)

func TestCache(t *testing.T) {
	t.Parallel()
	m := lru.New[string, int](100)
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
	for key, want := range map[string]int{"a": 4, "c": 3, "d": 5} {
		if v, ok := m.Get(key); !ok || v != want {
			t.Errorf("%s: %d, %v", key, v, ok)
		}
	}
	m.Clear()
	if _, ok := m.Get("a"); ok {
		t.Error("a is there after Clear")
	}
}
