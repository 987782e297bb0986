package audit

import (
	"context"
	"slices"
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
	for range 60 {
		if _, err := l.Append(t.Context(), sample); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range [][]uint64{{}, {0}, {59}, {3, 4, 31, 58}, {7, 1000}} {
		var got []uint64
		for r, err := range l.Records(context.Background(), Filter{Seqs: want}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Seq)
		}
		there := slices.DeleteFunc(slices.Clone(want), func(seq uint64) bool { return seq >= 60 })
		if !slices.Equal(got, there) {
			t.Errorf("asked for %d, got %d", want, got)
		}
	}
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
