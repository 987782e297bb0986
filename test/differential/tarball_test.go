package differential

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
)

// desk is where archives are unpacked.
type desk struct {
	dir  string
	node *worker // npm, pnpm and yarn
	pip  *worker
}

// unpack has a tool unpack an archive, and refuses anything that appears beside
// the folder that it was given.
func (d *desk) unpack(t *testing.T, tool, name string, data []byte) (landing, map[string]bool, answer) {
	t.Helper()
	place := filepath.Join(d.dir, "place")
	in, out := filepath.Join(place, "in"), filepath.Join(place, "a", "b", "out")
	defer os.RemoveAll(place)
	for _, dir := range []string{in, out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(in, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	w := d.node
	if tool == "pip" {
		w = d.pip
	}
	said := w.do(t, order{Tool: tool, File: filepath.Join(in, name), Dest: out})
	for dir, want := range map[string][]string{d.dir: {"place"}, place: {"a", "in"}, filepath.Join(place, "a"): {"b"}, filepath.Join(place, "a", "b"): {"out"}, in: {"cache", name}} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !slices.Contains(want, e.Name()) {
				t.Fatalf("%s put %s beside the folder that it was given", tool, filepath.Join(dir, e.Name()))
			}
		}
	}
	files, links := landed(t, out)
	return files, links, said
}

// reader says what a tarball lands, and what would run.
type reader func(data []byte) (files landing, scripts []string, err error)

// ours is the reader that the gateway has.
func ours(data []byte) (landing, []string, error) {
	f := ecosystem.File{Name: "foo-1.0.0.tgz", Version: "1.0.0", Path: "/foo/-/foo-1.0.0.tgz"}
	in, err := npm.New().Inspect(f, nil, bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	files, err := readTarball(data, archive.Limits{Careless: true, Unpacked: math.MaxInt32})
	return files, in.Scripts, err
}

// unguarded is a reader without a guard: the standard library's, which reads
// every form that it knows.
func unguarded(data []byte) (landing, []string, error) {
	files := landing{}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	var scripts []string
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, scripts, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if h.Typeflag == tar.TypeReg {
			b, err := io.ReadAll(r)
			if err != nil {
				return nil, nil, err
			}
			files[below(strings.TrimPrefix(h.Name, "./"))] = string(b)
		}
		if h.Typeflag == tar.TypeLink { // a copy, as a plain reader has it
			files[below(h.Name)] = files[below(h.Linkname)]
		}
	}
}

// differ gives what a tool makes of a tarball that a reader accepts, where it is
// something else than the reader says; "" if it is that, or if the tool refuses.
func (d *desk) differ(t *testing.T, tool string, data []byte, read reader) (string, error) {
	t.Helper()
	want, scripts, err := read(data)
	if err != nil {
		return "", err
	}
	got, links, said := d.unpack(t, tool, "foo-1.0.0.tgz", data)
	if said.Error != "" {
		return "", nil
	}
	if diff := want.without(links).tell(got); diff != "" {
		return fmt.Sprintf("%s unpacks it in another way:%s", tool, diff), nil
	}
	for _, s := range said.Scripts {
		if s == "bundled" {
			s = "a script of a bundled package"
		}
		if !slices.Contains(scripts, s) {
			return fmt.Sprintf("%s runs %q, which was not reported: %q", tool, s, scripts), nil
		}
	}
	return "", nil
}

// TestKnownTricks: what fools an unpacker is refused, and the comparison sees
// each of them where a reader without guards lets it pass.
func TestKnownTricks(t *testing.T) {
	t.Parallel()
	d := &desk{dir: t.TempDir(), node: startNode(t)}
	for _, c := range tricks() {
		data := packed(t, c.headers...)
		if _, _, err := ours(data); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: passes our reader: %v", c.name, err)
		}
		for _, tool := range c.fools {
			diff, err := d.differ(t, tool, data, unguarded)
			if err != nil || diff == "" {
				t.Errorf("%s: without a guard, the comparison with %s does not see it: %v", c.name, tool, err)
			}
		}
	}
}

// TestHonestTarballs: what packers write passes, and lands as our reader says.
func TestHonestTarballs(t *testing.T) {
	t.Parallel()
	d := &desk{dir: t.TempDir(), node: startNode(t)}
	for _, c := range plain() {
		for _, tool := range []string{"npm", "pnpm"} {
			if diff, err := d.differ(t, tool, packed(t, c.headers...), ours); diff != "" || err != nil {
				t.Errorf("%s: %s %v", c.name, diff, err)
			}
		}
	}
}
