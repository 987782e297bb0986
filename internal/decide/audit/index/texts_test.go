package index

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// empty is a log without records.
type empty struct{}

func (empty) End() (uint64, <-chan struct{}) { return 0, nil }

func (empty) Records(context.Context, audit.Filter) iter.Seq2[audit.Record, error] {
	return func(func(audit.Record, error) bool) {}
}

// TestTextsThatAreForgotten: a text keeps its number when its memory was let go, and no
// two have the same; what is remembered stays within bounds.
func TestTextsThatAreForgotten(t *testing.T) {
	f, err := openFiles(t.Context(), filepath.Join(t.TempDir(), "index.db"), empty{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.abandon()
	tx, err := f.writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	st := &statements{tx: tx}
	if st.find, err = tx.PrepareContext(t.Context(), findText); err != nil {
		t.Fatal(err)
	}
	if st.text, err = tx.PrepareContext(t.Context(), "INSERT INTO texts VALUES (?, ?, ?)"); err != nil {
		t.Fatal(err)
	}
	const most, texts = 10, 100
	numbers, whose := map[string]int64{}, map[int64]string{}
	for round := range 3 {
		for i := range texts {
			for _, text := range []string{fmt.Sprint("text ", i), "often"} {
				id, err := f.texts.textID(t.Context(), st, text)
				if err != nil {
					t.Fatal(err)
				}
				if was, ok := numbers[text]; ok && was != id || !ok && round > 0 || whose[id] != "" && whose[id] != text {
					t.Errorf("%q was %d and is %d, which is %q's", text, was, id, whose[id])
				}
				numbers[text], whose[id] = id, text
			}
			f.texts.shedUnused(most)
			if n := f.texts.sizeInMemory(); n > 2*most {
				t.Fatalf("%d texts are remembered", n)
			}
		}
	}
}
