package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestReaderChangesNothing reads beside the appender, and with a torn end.
func TestReaderChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReader(dir); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("an empty directory: %v", err)
	}
	l, err := Open(dir, Options{SegmentBytes: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := sample
	r.User = "ada"
	for range 40 {
		if _, err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(copied, "*.jsonl"))
	if err != nil || len(segments) < 2 {
		t.Fatal(segments, err)
	}
	f, err := os.OpenFile(slices.Max(segments), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":40,"timest`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	before := contents(t, copied)
	for _, from := range []string{dir, copied} {
		reader, err := OpenReader(from)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for got, err := range reader.Records(t.Context(), Filter{FromSeq: 3}) {
			if err != nil || got.User != "ada" || got.Seq != uint64(n)+3 {
				t.Fatalf("record %d: %+v, %v", n, got, err)
			}
			n++
		}
		if next, _ := reader.End(); n != 37 || next != 40 {
			t.Errorf("%d records up to %d, want 37 up to 40", n, next)
		}
	}
	if after := contents(t, copied); !slices.Equal(before, after) {
		t.Error("reading has changed the directory")
	}
}

func contents(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, path+"\n"+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
