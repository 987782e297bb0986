package coalesce_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
)

type (
	page string
	file string
)

// TestOnce: who wants the same gets the same, and what is said of another kind of
// thing in the same words is something else.
func TestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := coalesce.New(slog.New(slog.DiscardHandler))
		hold := make(chan struct{})
		fetches := 0
		answers := make(chan int, 3)
		for range 3 {
			go func() {
				n, err := coalesce.Once(t.Context(), g, page("six"), func(context.Context) (int, error) {
					fetches++
					<-hold
					return 6, nil
				})
				if err != nil {
					n = -1
				}
				answers <- n
			}()
		}
		synctest.Wait()
		text, err := coalesce.Once(t.Context(), g, file("six"), func(context.Context) (string, error) { return "another", nil })
		if text != "another" || err != nil {
			t.Errorf("a file of a page's name is %q, %v", text, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := coalesce.Once(gone, g, page("six"), func(context.Context) (int, error) { return 7, nil }); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("who gave up got %v", err)
		}
		close(hold)
		for range 3 {
			if n := <-answers; n != 6 {
				t.Errorf("one of three got %d", n)
			}
		}
		if fetches != 1 {
			t.Errorf("three asked for it together, and it was fetched %d times", fetches)
		}
		g.Cancel()
		g.Wait()
		if _, err := coalesce.Once(t.Context(), g, page("late"), func(context.Context) (int, error) { return 1, nil }); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("a fetch after the end: %v", err)
		}
		if g.Run(func() {}) || g.Begin() {
			t.Error("a task began after the end")
		}
	})
}

// TestAPanicIsAnError: a bug that is found in a fetch costs those who want it, and
// nobody else.
func TestAPanicIsAnError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	g := coalesce.New(slog.New(slog.NewTextHandler(&log, nil)))
	n, err := coalesce.Once(t.Context(), g, page("odd"), func(context.Context) (int, error) { panic("a bug") })
	if n != 0 || !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%d, %v", n, err)
	}
	g.Wait()
	if !strings.Contains(log.String(), "at=odd") || !strings.Contains(log.String(), `"a bug"`) {
		t.Error(log.String())
	}
}

// TestAhead: what comes of what nobody wants yet is told to whoever has begun it, once, unless somebody has wanted it meanwhile.
func TestAhead(t *testing.T) {
	t.Parallel()
	for name, wanted := range map[string]bool{"nobody wants it": false, "somebody does": true} {
		synctest.Test(t, func(t *testing.T) {
			g := coalesce.New(slog.New(slog.DiscardHandler))
			hold := make(chan struct{})
			do := func(context.Context) (int, error) {
				<-hold
				return 0, errors.New("it is wrong")
			}
			told := make(chan []string, 2)
			for _, guest := range []string{"a", "b"} {
				go func() {
					_, untold, err := coalesce.Ahead(fairqueue.For(t.Context(), guest), g, page("six"), do)
					if err == nil {
						t.Error("no error")
					}
					told <- untold
				}()
				synctest.Wait()
			}
			if wanted {
				go func() { _, _ = coalesce.Once(fairqueue.For(t.Context(), "c"), g, page("six"), do) }()
				synctest.Wait()
			}
			close(hold)
			all := append(<-told, <-told...)
			slices.Sort(all)
			if want := map[bool][]string{false: {"a", "b"}}[wanted]; !slices.Equal(all, want) {
				t.Errorf("%s: untold are %v, want %v", name, all, want)
			}
			g.Wait()
		})
	}
}
