package debian

import (
	"archive/tar"
	"bytes"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func TestReleasesInsideOfPackages(t *testing.T) {
	t.Parallel()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, text := range map[string]string{
		"./usr/lib/python3/dist-packages/Some_Thing-1.2.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: Some_Thing\nVersion: 1.2\n\nName: liar\n",
		"./usr/lib/python3/dist-packages/flat-3.egg-info":                  "Name: flat\nVersion: 3\n",
		"./usr/lib/python3/dist-packages/wheel-4.dist-info/METADATA":       "Name: wheel\nVersion: 4\n",
		"./usr/lib/node_modules/@scope/one/package.json":                   `{"name": "@scope/one", "version": "5.0.0"}`,
		"./usr/lib/node_modules/broken/package.json":                       `{"name": "broken"`,
		"./usr/lib/node_modules/versionless/package.json":                  `{"name": "versionless"}`,
		"../../../outside-9.egg-info":                                      "Name: outside\nVersion: 9\n",
		"./usr/share/doc/METADATA":                                         "Name: none\nVersion: 1\n",
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readContents(t.Context(), t.TempDir(), &archive)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, pkgref.Ref.CompareSpelled)
	want := []pkgref.Ref{
		{Ecosystem: pkgref.Node, Name: "@scope/one", Version: "5.0.0"},
		{Ecosystem: pkgref.Python, Name: "flat", Version: "3"},
		{Ecosystem: pkgref.Python, Name: "some-thing", Version: "1.2"},
		{Ecosystem: pkgref.Python, Name: "wheel", Version: "4"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("inside are %v, want %v", got, want)
	}
	if _, err := readContents(t.Context(), t.TempDir(), bytes.NewReader(make([]byte, 100))); err == nil {
		t.Error("half an archive is read")
	}
}
