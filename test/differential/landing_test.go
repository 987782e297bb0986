package differential

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
)

// landing is what lies in a folder: content by path, files only.
type landing map[string]string

// tell says in which ways what was got differs from a landing.
func (l landing) tell(got landing) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(l)) {
		if text, ok := got[path]; !ok {
			fmt.Fprintf(&b, "\n  is missing: %q", path)
		} else if text != l[path] {
			fmt.Fprintf(&b, "\n  has other content: %q", path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if _, ok := l[path]; !ok {
			fmt.Fprintf(&b, "\n  nobody spoke of: %q", path)
		}
	}
	return b.String()
}

// without leaves out the paths that are links to one of the two.
func (l landing) without(links map[string]bool) landing {
	out := landing{}
	for path, text := range l {
		if !links[path] {
			out[path] = text
		}
	}
	return out
}

// landed lists a folder.
func landed(t *testing.T, dir string) (landing, map[string]bool) {
	t.Helper()
	files, links := landing{}, map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			links[rel] = true
			return nil
		}
		b, err := os.ReadFile(path)
		files[rel] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files, links
}

// below is a member's path without its first element, as clients place it.
func below(path string) string {
	_, rest, _ := strings.Cut(path, "/")
	return rest
}

// readTarball reads what our reader says of a tarball's landing.
func readTarball(data []byte, limits archive.Limits) (landing, error) {
	files := landing{}
	err := archive.TarGz(bytes.NewReader(data), int64(len(data)), limits, func(m archive.Member, content io.Reader) error {
		if !m.Mode.IsRegular() {
			return nil
		}
		if m.Link != "" {
			files[below(m.Path)] = files[below(m.Link)]
			return nil
		}
		b, err := io.ReadAll(content)
		files[below(m.Path)] = string(b)
		return err
	})
	return files, err
}

// readZip reads what our reader says of a zip's members.
func readZip(data []byte) (landing, error) {
	z, err := archive.Zip(bytes.NewReader(data), int64(len(data)), archive.Limits{})
	if err != nil {
		return nil, err
	}
	files := landing{}
	return files, z.Visit(func(m archive.Member, content io.Reader) error {
		b, err := io.ReadAll(content)
		files[m.Path] = string(b)
		return err
	})
}
