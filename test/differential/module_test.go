package differential

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
)

const modulePrefix = "example.com/foo@v1.0.0/"

// ourModule is what our reader says of a module's zip.
func ourModule(data []byte) (landing, error) {
	if _, err := golang.New().Inspect(ecosystem.File{Name: "v1.0.0.zip", Version: "v1.0.0"}, nil, bytes.NewReader(data)); err != nil {
		return nil, err
	}
	files, err := readZip(data)
	out := landing{}
	for path, text := range files {
		out[strings.TrimPrefix(path, modulePrefix)] = text
	}
	return out, err
}

// unpackModule returns what the go command's own unpacker lands; nil if it refuses.
func unpackModule(t *testing.T, dir string, data []byte) landing {
	t.Helper()
	place := filepath.Join(dir, "place")
	defer os.RemoveAll(place)
	if err := os.MkdirAll(place, 0o755); err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(place, "v1.0.0.zip")
	if err := os.WriteFile(from, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(place, "out")
	if modzip.Unzip(out, module.Version{Path: "example.com/foo", Version: "v1.0.0"}, from) != nil {
		return nil
	}
	files, _ := landed(t, out)
	return files
}

// module is a module's zip of some files, with at most two oddities.
func (d dice) module(tb testing.TB) []byte {
	tb.Helper()
	z := zipFile{entries: []entry{{path: modulePrefix + "go.mod", data: "module example.com/foo\n"}}}
	for range 1 + d.IntN(3) {
		e := entry{
			path: modulePrefix + pick(d, "a.go", "b/b.go", "b/", "c:d", "é.go", "vendor/modules.txt", "vendor/example.com/x/x.go", "sub/go.mod", "GO.MOD", "A.go", "x.", "con", "aux.go", "LICENSE", "../x", "./y", "b//c", " s", "t~1", "u'"),
			data: pick(d, "", "package a\n", "# example.com/x v1.0.0\n", strings.Repeat("x", 70_000), "PK\x05\x06"), stored: d.in(3), descriptor: d.in(4),
		}
		if !ascii(e.path) || d.in(10) {
			e.flags = 0x800
		}
		if d.in(6) {
			e.extra = pick(d, extraField(0x7075, "\x01\x00\x00\x00\x00"+e.path), extraField(0x5455, "\x01"), "\x01")
		}
		if d.in(8) {
			e.attributes = pick[uint32](d, 0o100644<<16, 0o120777<<16, 0o040755<<16|0x10, 0x10)
		}
		z.entries = append(z.entries, e)
	}
	for range pick(d, 0, 0, 1, 2) {
		p := patch{d.IntN(80), pick(d, "\x00", "\x01", "\x08", "\x10", "\x80", "\xff", "a", "/")}
		e := &z.entries[d.IntN(len(z.entries))]
		if d.in(2) {
			e.head = append(e.head, p)
		} else {
			e.listed = append(e.listed, p)
		}
	}
	return z.bytes(tb)
}

// TestRandomModules: whatever our reader accepts, the go command unpacks as it
// says.
func TestRandomModules(t *testing.T) {
	t.Parallel()
	d, dir := roll(t), t.TempDir()
	accepted, n := 0, rounds(300, 15_000)
	for range n {
		data := d.module(t)
		want, err := ourModule(data)
		if err != nil {
			continue
		}
		got := unpackModule(t, dir, data)
		if got == nil {
			continue
		}
		accepted++
		if diff := want.tell(got); diff != "" {
			t.Errorf("the go command unpacks it in another way:%s\n%s", diff, keep(t, "v1.0.0.zip", data))
		}
	}
	t.Logf("%d modules, %d of them unpacked", n, accepted)
	if accepted < n/40 {
		t.Errorf("of %d modules only %d were accepted: the comparison compares nothing", n, accepted)
	}
}
