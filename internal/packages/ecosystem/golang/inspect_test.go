package golang_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	modzip "golang.org/x/mod/zip"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
)

func inspect(version string, data []byte) (ecosystem.Inspection, error) {
	return golang.New().Inspect(ecosystem.File{Name: version + ".zip", Version: version}, nil, bytes.NewReader(data))
}

func TestInspect(t *testing.T) {
	m := golangtest.Pack(t, "example.com/Foo/v2", "v2.1.0",
		[2]string{"go.mod", "module example.com/Foo/v2\nrequire example.com/a v1.2.3\nreplace example.com/a => ./evil\n"},
		[2]string{"a.go", "package a\n"},
		[2]string{"vendor/modules.txt", "# example.com/a v1.2.3\n## explicit\nexample.com/a/p\n# example.com/b v0.1.0 => example.com/c v1.0.0\nexample.com/b\n# example.com/none v1.0.0\n# ../x\n"},
		[2]string{"vendor/example.com/a/p/p.go", "package p\n"},
		[2]string{"vendor/example.com/b/p.go", "package p\n"},
	)
	in, err := inspect(m.Version, m.Zip)
	if err != nil {
		t.Fatal(err)
	}
	want := ecosystem.Inspection{
		Description: ecosystem.Description{
			Name: "example.com/Foo/v2", Version: "v2.1.0",
			Requirements: []ecosystem.Requirement{{Name: "example.com/a", Specifier: ">=v1.2.3"}},
		},
		Bundled: []ecosystem.Bundled{{Name: "example.com/a", Version: "v1.2.3"}, {Name: "example.com/b", Version: "v0.1.0"}},
	}
	if diff := cmp.Diff(want, in, cmpopts.IgnoreFields(ecosystem.Inspection{}, "Inside")); diff != "" {
		t.Errorf("inspection (-want +got):\n%s", diff)
	}
	old := golangtest.Pack(t, "example.com/old", "v2.0.0+incompatible", [2]string{"a.go", "package a\n"})
	in, err = inspect(old.Version, old.Zip)
	if err != nil || in.Name != "example.com/old" || in.Version != "v2.0.0+incompatible" || in.Requirements != nil {
		t.Errorf("a zip without go.mod: %+v, %v", in, err)
	}
}

// TestInspectRefuses: whatever the go command would not unpack is refused, and
// what it would is not (the positive control of each list).
func TestInspectRefuses(t *testing.T) {
	const at = "example.com/foo@v1.0.0/"
	good := [2]string{at + "go.mod", "module example.com/foo\n"}
	for name, files := range map[string][][2]string{
		"another module's go.mod":   {{at + "go.mod", "module example.com/bar\n"}},
		"another module's files":    {good, {"example.com/bar@v1.0.0/a.go", ""}},
		"another version's files":   {{"example.com/foo@v1.0.1/go.mod", "module example.com/foo\n"}},
		"no prefix":                 {{"go.mod", "module example.com/foo\n"}},
		"a prefix that is no path":  {{"foo@v1.0.0/go.mod", "module foo\n"}},
		"a major version mismatch":  {{"example.com/foo/v2@v1.0.0/a.go", ""}},
		"no file":                   {},
		"a go.mod below":            {good, {at + "x/go.mod", "module example.com/x\n"}},
		"a go.mod in another case":  {good, {at + "x/GO.MOD", ""}},
		"two cases":                 {good, {at + "a.go", ""}, {at + "A.go", ""}},
		"two cases of a folder":     {good, {at + "a/x.go", ""}, {at + "A/y.go", ""}},
		"a file that is a folder":   {good, {at + "a", ""}, {at + "a/x.go", ""}},
		"twice":                     {good, {at + "a.go", "1"}, {at + "a.go", "2"}},
		"a way out":                 {good, {at + "../x.go", ""}},
		"an absolute path":          {good, {"/etc/passwd", ""}},
		"a name of Windows":         {good, {at + "aux.go", ""}},
		"a backslash":               {good, {at + "a\\b.go", ""}},
		"a colon":                   {good, {at + "a:b.go", ""}},
		"a name that ends in a dot": {good, {at + "a./x.go", ""}},
		"a go.mod that is none":     {{at + "go.mod", "module (\n"}},
		"a huge go.mod":             {{at + "go.mod", "module example.com/foo\n" + strings.Repeat("// x\n", 1<<20)}},
	} {
		data := golangtest.Zip(t, files...)
		if in, err := inspect("v1.0.0", data); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, in, err)
		}
	}
	data := golangtest.Zip(t, good, [2]string{at + "a.go", ""}, [2]string{at + "x/y/é.txt", ""}, [2]string{at + ".github/x.yml", ""})
	if _, err := inspect("v1.0.0", data); err != nil {
		t.Errorf("a good zip: %v", err)
	}
	broken := bytes.Clone(data)
	broken[bytes.Index(broken, []byte("PK\x01\x02"))+16] ^= 1 // a checksum in the directory
	if _, err := inspect("v1.0.0", broken); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a wrong checksum: %v", err)
	}
}

func TestInspectRefusesLinks(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "example.com/foo@v1.0.0/link"}
	h.SetMode(os.ModeSymlink | 0o777)
	w, err := z.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("/etc/passwd"))
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if in, err := inspect("v1.0.0", b.Bytes()); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestSums: our sums are those of the go command's own code.
func TestSums(t *testing.T) {
	m := golangtest.New(t, "example.com/Foo", "v1.0.0", "example.com/a v1.0.0")
	path := filepath.Join(t.TempDir(), "m.zip")
	if err := os.WriteFile(path, m.Zip, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := modzip.CheckZip(module.Version{Path: m.Path, Version: m.Version}, path); err != nil {
		t.Fatalf("the fixture is no module zip: %v", err)
	}
	want, err := dirhash.HashZip(path, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := golang.New().SumFile(ecosystem.File{Version: m.Version}, bytes.NewReader(m.Zip))
	if err != nil || got != want || got != m.ZipSum {
		t.Errorf("SumFile = %s, %v; want %s", got, err, want)
	}
	folders := golangtest.Zip(t, [2]string{"x/", ""}, [2]string{"x/b", "1"}, [2]string{"x/a", "2"})
	if err := os.WriteFile(path, folders, 0o600); err != nil {
		t.Fatal(err)
	}
	if want, err = dirhash.HashZip(path, dirhash.Hash1); err != nil {
		t.Fatal(err)
	}
	if got, err = golang.New().SumFile(ecosystem.File{}, bytes.NewReader(folders)); err != nil || got != want {
		t.Errorf("SumFile with a folder = %s, %v; want %s", got, err, want)
	}
	if got, err = golang.New().SumAttachment(modRoute("v1.0.0"), m.Mod); err != nil || got != m.ModSum {
		t.Errorf("SumAttachment = %s, %v; want %s", got, err, m.ModSum)
	}
	for _, r := range []ecosystem.Route{infoRoute("v1.0.0", false), infoRoute("x.mod", true)} {
		if got, err = golang.New().SumAttachment(r, m.Info); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("SumAttachment(%s) = %s, %v", r.File, got, err)
		}
	}
	if got, err = golang.New().SumFile(ecosystem.File{}, bytes.NewReader([]byte("no zip"))); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("SumFile of no zip = %s, %v", got, err)
	}
}
