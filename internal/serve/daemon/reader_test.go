package daemon

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi"
)

// TestWhatAReaderFinds: the files are those with the digests that were asked about, or nothing is said of them.
func TestWhatAReaderFinds(t *testing.T) {
	t.Parallel()
	kept := func(name, text string) (httpapi.KeptRelease, *os.File) {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		must(t, w.WriteHeader(&tar.Header{Name: "a/setup.py", Mode: 0o644, Size: int64(len(text))}))
		_, err := w.Write([]byte(text))
		must(t, errors.Join(err, w.Close(), z.Close()))
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, b.Bytes(), 0o600))
		f, err := os.Open(path)
		must(t, err)
		t.Cleanup(func() { f.Close() })
		sum := sha256.Sum256(b.Bytes())
		return httpapi.KeptRelease{Name: name, SHA256: hex.EncodeToString(sum[:])}, f
	}
	was, before := kept("a-1.tar.gz", "one\n")
	is, after := kept("a-2.tar.gz", "two\n")
	found, err := lookInto(readerDocument{Ecosystem: pkgref.Python, Before: was, After: is}, after, before)
	if err != nil || found.Listing == nil || found.Listing.Total != 1 || found.Listing.Changes[0].Runs != "when it is built" {
		t.Errorf("%+v, %v", found.Listing, err)
	}
	for name, b := range map[string]readerDocument{"the later one": {Before: was, After: was}, "the earlier one": {Before: is, After: is}} {
		for _, f := range []*os.File{before, after} {
			_, err := f.Seek(0, 0)
			must(t, err)
		}
		if _, err := lookInto(b, after, before); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s is another file: %v", name, err)
		}
	}
}
