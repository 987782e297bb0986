package memo_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/kit/lru"
	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/memo"
)

type name string

// String implements memo.Key.
func (n name) String() string { return string(n) }

// TestFindings: a value is found out once, and a restart finds it on the disk; an
// error is found out again; two users of one group and one key are two.
func TestFindings(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir(), cache.Limits{Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := coalesce.New(slog.New(slog.DiscardHandler))
	defer g.Wait()
	found := 0
	get := func(f *memo.Findings[name, int], key name, value int, err error) (int, error) {
		return f.Get(t.Context(), key, func(context.Context) (int, error) {
			found++
			return value, err
		})
	}
	first, another := openNumbers(t, store, g, "first"), openNumbers(t, store, g, "another")
	odd := errors.New("odd")
	if _, err := get(first, "a", 1, odd); !errors.Is(err, odd) {
		t.Error(err)
	}
	for _, f := range []*memo.Findings[name, int]{first, first, openNumbers(t, store, g, "first")} {
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

// TestTwoUsersOfOneGroup: what one finds out while another does under the same key is
// not the other's. Were it, the inner one would wait for the outer for ever.
func TestTwoUsersOfOneGroup(t *testing.T) {
	t.Parallel()
	store, err := cache.Open(t.TempDir(), cache.Limits{Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		g := coalesce.New(slog.New(slog.DiscardHandler))
		defer g.Wait()
		inner, outer := openNumbers(t, store, g, "inner"), openNumbers(t, store, g, "outer")
		v, err := outer.Get(t.Context(), "a", func(ctx context.Context) (int, error) {
			of, err := inner.Get(ctx, "a", func(context.Context) (int, error) { return 1, nil })
			return of + 1, err
		})
		if v != 2 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
	})
}

func openNumbers(t *testing.T, store *cache.Store, g *coalesce.Group, shelf string) *memo.Findings[name, int] {
	t.Helper()
	disk, err := memo.NewDisk(store, shelf, 0, memo.JSON[name, int](), slog.New(slog.DiscardHandler), "a number")
	if err != nil {
		t.Fatal(err)
	}
	return memo.NewFindings(lru.New[name, int](100), disk, g, func(name, int) int64 { return 1 })
}
