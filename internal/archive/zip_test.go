package archive_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/archive"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// zipOf packs files as Go's own writer does: streamed, with descriptors.
func zipOf(t testing.TB, files map[string]string, order ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range order {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func openZip(data []byte) (*archive.ZipReader, error) {
	return archive.Zip(bytes.NewReader(data), int64(len(data)), archive.Limits{})
}

func TestZipReadsWhatItAccepts(t *testing.T) {
	files := map[string]string{"a/one.py": "print(1)\n", "a/": "", "b.txt": ""}
	z, err := openZip(zipOf(t, files, "a/", "a/one.py", "b.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	err = z.Visit(func(m archive.Member, content io.Reader) error {
		data, err := io.ReadAll(content)
		got[m.Path] = string(data)
		return err
	})
	if err != nil || len(got) != 2 || got["a/one.py"] != files["a/one.py"] {
		t.Fatalf("visit: %v, %v", got, err)
	}
	r, err := z.Open("a/one.py")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != files["a/one.py"] {
		t.Fatalf("open: %q, %v", data, err)
	}
	if _, err := z.Open("a"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a folder opens: %v", err)
	}
}
