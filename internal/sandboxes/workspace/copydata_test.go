package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestAFileOfAnotherLengthByNow: a file that became shorter after it was looked at is copied as it is, without zeros behind
// what there is, and of one that became longer no more is copied than was said. The controls are as long as they were.
func TestAFileOfAnotherLengthByNow(t *testing.T) {
	const hole = 1 << 20
	data := []byte("twelve bytes")
	sparse := append(append(bytes.Clone(data), make([]byte, hole)...), data...)
	open := func(name string) *os.File {
		t.Helper()
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	for what, c := range map[string]struct {
		data []byte
		hole int64 // behind the data
		said int64
		want []byte
	}{
		"control":                      {data, 0, 12, data},
		"control, a hole":              {sparse, 0, int64(len(sparse)), sparse},
		"control, a hole at its end":   {data, hole, 12 + hole, sparse[:12+hole]},
		"shorter":                      {data, 0, 100, data},
		"shorter, with a hole":         {data, hole, 2 * hole, sparse[:12+hole]},
		"shorter, and empty":           {nil, 0, 100, nil},
		"longer":                       {data, 0, 6, data[:6]},
		"longer, behind a hole":        {sparse, 0, 100, sparse[:100]},
		"longer, and was empty before": {data, 0, 0, nil},
	} {
		from, to := open("from"), open("to")
		if _, err := from.Write(c.data[:min(len(c.data), 12)]); err != nil {
			t.Fatal(err)
		}
		if len(c.data) > 12 {
			if _, err := from.WriteAt(data, 12+hole); err != nil {
				t.Fatal(err)
			}
		}
		if err := from.Truncate(int64(len(c.data)) + c.hole); err != nil {
			t.Fatal(err)
		}
		if err := copyData(to, from, c.said); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got, err := os.ReadFile(to.Name()); err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("%s: %d bytes, want %d (%v)", what, len(got), len(c.want), err)
		}
	}
	from, err := os.Open("/proc/self/comm") // it says that it has no length
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	to := open("to")
	if err := copyData(to, from, 4096); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(to.Name()); err != nil || len(got) == 0 || len(got) > 100 || bytes.IndexByte(got, 0) >= 0 {
		t.Errorf("a file that is shorter than it says: %q, %v", got, err)
	}
}
