package logbook

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/cache"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/coalesce"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// shipped is a witness that knows one size.
type shipped struct{ ecosystem.LogSize }

func (shipped) Attest(context.Context, ecosystem.Log, string, string) (ecosystem.Attested, error) {
	return ecosystem.Attested{}, nil
}
func (shipped) SumFile(ecosystem.File, ecosystem.Content) (string, error) { return "", nil }
func (shipped) SumAttachment(ecosystem.Route, []byte) (string, error)     { return "", nil }
func (shipped) Head(string, []byte) (int64, error)                        { return 0, nil }
func (shipped) HeadPath() string                                          { return "latest" }
func (shipped) VerifierOf(named string) (string, error)                   { return named, nil }

func (s shipped) Known(string) []ecosystem.LogSize { return []ecosystem.LogSize{s.LogSize} }

func newTestBook(t *testing.T, store *cache.Store) *Book {
	t.Helper()
	b, err := New(Config{
		Witness: shipped{ecosystem.LogSize{Size: 10, Unix: 100}}, Store: store, Flights: coalesce.New(slog.New(slog.DiscardHandler)),
		Upstream: upstream.Config{Index: "https://index.example/", Log: "sum.example+1+x"}, Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLogSizes: at most one observation a day, none that says nothing new, and
// all of them after a restart; a record is as old as the first that covers it.
func TestLogSizes(t *testing.T) {
	store, err := cache.Open(t.TempDir(), cache.Limits{Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	first, second := newTestBook(t, store), newTestBook(t, store) // two processes on one cache
	day := time.Unix(1_000_000, 0)
	for _, o := range []struct {
		by    *Book
		size  int64
		after time.Duration
	}{
		{first, 0, 0},
		{first, 20, 0},
		{second, 25, time.Hour}, // the other has observed it today
		{first, 30, 23 * time.Hour},
		{second, 20, 24 * time.Hour}, // it has not grown
		{second, 40, 25 * time.Hour},
		{first, 50, 26 * time.Hour},
	} {
		if err := o.by.observe(o.size, day.Add(o.after)); err != nil {
			t.Fatal(err)
		}
	}
	third := newTestBook(t, store)
	for position, want := range map[int64]time.Time{
		0: time.Unix(100, 0), 9: time.Unix(100, 0), 10: day, 19: day, 20: day.Add(25 * time.Hour), 39: day.Add(25 * time.Hour), 40: {}, 1 << 40: {},
	} {
		if got := third.TimeOf(position); !got.Equal(want) {
			t.Errorf("record %d is said to be of %v, want %v", position, got, want)
		}
	}
}
