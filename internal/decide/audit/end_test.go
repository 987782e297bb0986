package audit

import (
	"context"
	"slices"
	"sync"
	"testing"
)

func TestEndIsClosedByTheNextRecord(t *testing.T) {
	l, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	before, grown := l.End()
	for want := before; want < before+20; want++ {
		next, again := l.End()
		if next != want || again != grown {
			t.Fatalf("the end is %d (same channel: %t), want %d", next, again == grown, want)
		}
		select {
		case <-grown:
			t.Fatal("the log has grown before anything was appended")
		default:
		}
		if _, err := l.Append(t.Context(), sample); err != nil {
			t.Fatal(err)
		}
		<-grown
		_, grown = l.End()
	}
}

func TestSeqsSelect(t *testing.T) {
	l, err := Open(t.TempDir(), Options{SegmentBytes: 4 << 10}) // a few records each
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	appendMany(t, l, 60)
	for _, want := range [][]uint64{{}, {0}, {59}, {3, 4, 31, 58}, {7, 1000}} {
		there := slices.DeleteFunc(slices.Clone(want), func(seq uint64) bool { return seq >= 60 })
		if got := seqs(t, l, Filter{Seqs: want}); !slices.Equal(got, there) {
			t.Errorf("asked for %d, got %d", want, got)
		}
	}
}

// TestMarksLeadToTheSameRecords reads records before and after their places are
// remembered, in an order that remembers some before others.
func TestMarksLeadToTheSameRecords(t *testing.T) {
	const records = 5 * markEvery
	l, err := Open(t.TempDir(), Options{SegmentBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	appendMany(t, l, records)
	if len(l.bounds) < 2 {
		t.Fatal("there is one segment only")
	}
	for range 2 {
		for _, from := range []uint64{0, records - 1, markEvery, 3*markEvery - 1, 2*markEvery + 1, 1} {
			if got := seqs(t, l, Filter{FromSeq: from}); len(got) != int(records-from) || got[0] != from {
				t.Errorf("from %d there are %d records, want %d", from, len(got), records-from)
			}
		}
		want := []uint64{1, markEvery + 3, 3 * markEvery, 3*markEvery + 1, records - 1}
		if got := seqs(t, l, Filter{Seqs: want}); !slices.Equal(got, want) {
			t.Errorf("asked for %d, got %d", want, got)
		}
	}
}

func appendMany(t *testing.T, l *FileLog, n int) {
	t.Helper()
	work := make(chan struct{}, n)
	for range n {
		work <- struct{}{}
	}
	close(work)
	var wg sync.WaitGroup
	for range 64 { // they share syncs
		wg.Go(func() {
			for range work {
				if _, err := l.Append(t.Context(), sample); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func seqs(t *testing.T, l *FileLog, f Filter) []uint64 {
	t.Helper()
	var got []uint64
	for r, err := range l.Records(context.Background(), f) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Seq)
	}
	return got
}

func TestFingerprintLeavesOutWhatMayBeErased(t *testing.T) {
	a, b := sample, sample
	b.User, b.Task, b.Detail = "somebody", "something", map[string]string{"a": "b"}
	if Fingerprint(a) != Fingerprint(b) {
		t.Error("it changes with what may be erased")
	}
	b.SHA256 = "00"
	if Fingerprint(a) == Fingerprint(b) {
		t.Error("it does not change with the rest")
	}
}
