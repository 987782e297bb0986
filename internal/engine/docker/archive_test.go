package docker

import (
	"archive/tar"
	"os"
	"testing"
)

// header is an entry of an archive that nobody honest wrote.
type header struct {
	name, link string
	kind       byte
}

func writeArchive(t *testing.T, path string, headers []header) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	for _, h := range headers {
		if err := w.WriteHeader(&tar.Header{Name: h.name, Linkname: h.link, Typeflag: h.kind, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
