package pypi_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

const (
	fooMetadata = "Metadata-Version: 2.1\nName: Foo\nVersion: 1.0\nRequires-Dist: bar>=1\n"
	fooWheel    = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
)

// content are paths and texts, in order.
type content []string

// foo is a wheel of foo 1.0 with more files, less RECORD.
func foo(more ...string) content {
	return append(content{"foo-1.0.dist-info/METADATA", fooMetadata, "foo-1.0.dist-info/WHEEL", fooWheel}, more...)
}

// recorded appends the RECORD that the content should have.
func (c content) recorded() content {
	var b strings.Builder
	for i := 0; i < len(c); i += 2 {
		fmt.Fprintln(&b, recordLine(c[i], c[i+1]))
	}
	b.WriteString("foo-1.0.dist-info/RECORD,,\n")
	return append(c, "foo-1.0.dist-info/RECORD", b.String())
}

func recordLine(path, text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%q,sha256=%s,%d", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
}

// with appends a RECORD of one's own.
func (c content) with(record string) content { return append(c, "foo-1.0.dist-info/RECORD", record) }

func inspectWheel(t *testing.T, c content) (ecosystem.Inspection, error) {
	t.Helper()
	return pypi.New().Inspect(ecosystem.File{Name: "foo-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel}, nil, wheel(t, c...))
}

func TestInspectWheel(t *testing.T) {
	got, err := inspectWheel(t, foo("foo/__init__.py", "", "foo/_vendor/Bar_Baz-2.1.dist-info/METADATA", "x", "foo/_vendor/Bar_Baz-2.1.dist-info/RECORD", "y",
		"foo/_vendor/broken.dist-info/METADATA", "", "foo-1.0.dist-info/entry_points.txt", "[console_scripts]\nfoo = foo:main\n").recorded())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(fooMetadata))
	want := ecosystem.Inspection{
		Description: ecosystem.Description{Name: "foo", Version: "1.0", Requirements: []ecosystem.Requirement{{Name: "bar", Specifier: ">=1"}}},
		Bundled:     []ecosystem.Bundled{{Name: "bar-baz", Version: "2.1"}},
		Sidecar:     "sha256:" + hex.EncodeToString(sum[:]),
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ecosystem.Inspection{}, "Inside", "Said")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInspectFindings: what runs at every start of Python is told, wherever in
// the wheel it lies.
func TestInspectFindings(t *testing.T) {
	for path, want := range map[string]string{
		"foo.pth":                    ".pth file",
		"foo-1.0.data/purelib/a.pth": ".pth file",
		"foo-1.0.data/platlib/a.pth": ".pth file",
		"foo-1.0.data/data/lib/python3.11/site-packages/a.pth": ".pth file",
		"sitecustomize.py": "sitecustomize",
		"usercustomize.cpython-311-x86_64-linux-gnu.so":               "sitecustomize or usercustomize",
		"sitecustomize/__init__.py":                                   "sitecustomize",
		"foo-1.0.data/data/x/site-packages/usercustomize/__init__.py": "sitecustomize",
		"foo/data.pth":                "",
		"foo/sitecustomize.py":        "",
		"foo-1.0.data/scripts/run":    "",
		"foo-1.0.data/data/etc/a.pth": "",
	} {
		got, err := inspectWheel(t, foo(path, "import os\n").recorded())
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if all := strings.Join(got.Findings, "|"); (want == "") != (all == "") || !strings.Contains(all, want) {
			t.Errorf("%s: findings %q, want %q", path, all, want)
		}
	}
}

// TestGapsOfARecord: what RECORD does not list, and what it lists as if it lay at the root of the
// disk, pip and uv install alike: it passes and is a finding. A wheel that was built here has none.
func TestGapsOfARecord(t *testing.T) {
	own := recordLine("foo-1.0.dist-info/METADATA", fooMetadata) + "\n" + recordLine("foo-1.0.dist-info/WHEEL", fooWheel) + "\nfoo-1.0.dist-info/RECORD,,\n"
	for name, c := range map[string]struct {
		in   content
		want string
	}{
		"none":                    {foo("foo.py", "x").recorded(), ""},
		"a module":                {foo("foo.py", "x").with(own), `does not list all of its files (not 1 of them, such as "foo.py")`},
		"two of three":            {foo("a.py", "x", "b.py", "y", "c.py", "z").with(own + recordLine("b.py", "y") + "\n"), `does not list all of its files (not 2 of them, such as "a.py")`},
		"in a scheme":             {foo("foo-1.0.data/scripts/run", "x").with(own), "does not list"},
		"of the description":      {foo("foo-1.0.dist-info/entry_points.txt", "").with(own), "does not list"},
		"the metadata":            {foo().with("foo-1.0.dist-info/RECORD,,\n"), "not 2 of them"},
		"an empty RECORD":         {foo().with(""), "not 2 of them"},
		"absolute":                {foo("foo/a.py", "x", "foo/b.py", "y").with(own + recordLine("/foo/a.py", "x") + "\n" + recordLine("/foo/b.py", "y") + "\n"), `lists files by absolute paths (2 of them, such as "/foo/a.py")`},
		"absolute, its own name":  {foo("Foo/a.py", "x").with(own + recordLine("/Foo/a.py", "x") + "\n"), `such as "/Foo/a.py"`},
		"a name like a statement": {foo(`a"; all is well`, "x").with(own), `such as "a\"; all is well"`},
	} {
		got, err := inspectWheel(t, c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if all := strings.Join(got.Findings, "|"); (c.want == "") != (all == "") || !strings.Contains(all, c.want) {
			t.Errorf("%s: findings %q, want %q", name, all, c.want)
		}
		_, err = pypi.New().Inspect(ecosystem.File{Name: "foo-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindBuilt}, nil, wheel(t, c.in...))
		if (c.want == "") != (err == nil) {
			t.Errorf("%s, built here: %v", name, err)
		}
	}
}

// TestNoDistributionOwnsADirectoryOfTheRoot: a distribution may have the name of a directory in which others' files are.
func TestNoDistributionOwnsADirectoryOfTheRoot(t *testing.T) {
	for _, name := range []string{"foo", "selenium", "home", "root", "tmp", "opt", "srv", "var", "usr", "etc", "workspace", "Workspace", "data", "app", "testbed", "Users"} {
		metadata, info, module := "Metadata-Version: 2.1\nName: "+name+"\nVersion: 1.0\n", name+"-1.0.dist-info", name+"/main.py"
		lines := recordLine(info+"/METADATA", metadata) + "\n" + recordLine(info+"/WHEEL", fooWheel) + "\n" + recordLine("/"+module, "x") + "\n" + info + "/RECORD,,\n"
		file := ecosystem.File{Name: name + "-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel}
		_, err := pypi.New().Inspect(file, nil, wheel(t, info+"/METADATA", metadata, info+"/WHEEL", fooWheel, module, "x", info+"/RECORD", lines))
		if served := name == "foo" || name == "selenium"; served != (err == nil) || err != nil && !strings.Contains(err.Error(), "leads out of the wheel, in line 3") {
			t.Errorf("a wheel of %s: %v", name, err)
		}
	}
}

func TestInspectWheelRefuses(t *testing.T) {
	metadata, wheelText := recordLine("foo-1.0.dist-info/METADATA", fooMetadata)+"\n", recordLine("foo-1.0.dist-info/WHEEL", fooWheel)+"\n"
	other := strings.Replace(fooMetadata, "1.0", "2.0", 1)
	own := "foo-1.0.dist-info/RECORD,,\n"
	for name, c := range map[string]struct {
		in   content
		want string
	}{
		"no RECORD":                             {foo(), "no RECORD"},
		"an absolute line for another file":     {foo("foo/a.py", "1").with(metadata + wheelText + recordLine("/foo/a.py", "2") + "\n" + own), "not the one that its RECORD lists"},
		"an absolute line without a digest":     {foo("foo/a.py", "1").with(metadata + wheelText + "/foo/a.py,,\n" + own), "without a strong digest"},
		"an absolute line beside the file's":    {foo("foo/a.py", "1").with(metadata + wheelText + recordLine("foo/a.py", "1") + "\n" + recordLine("/foo/a.py", "1") + "\n" + own), "leads out of the wheel, in line 4"},
		"an absolute line for a home":           {foo("home/agent/.ssh/config", "1").with(metadata + wheelText + recordLine("/home/agent/.ssh/config", "1") + "\n" + own), "leads out of the wheel, in line 3"},
		"an absolute line for a workspace":      {foo("workspace/main.py", "1").with(metadata + wheelText + recordLine("/workspace/main.py", "1") + "\n" + own), "leads out of the wheel, in line 3"},
		"an absolute line at the top":           {foo("foo", "1").with(metadata + wheelText + recordLine("/foo", "1") + "\n" + own), "leads out of the wheel, in line 3"},
		"an absolute line with two slashes":     {foo("foo/a.py", "1").with(metadata + wheelText + recordLine("//foo/a.py", "1") + "\n" + own), "leads out of the wheel, in line 3"},
		"a file that is not listed, and a line": {foo("foo/a.py", "1").with(metadata + wheelText + "foo/gone.py,,\n" + own), "does not have, in line 3"},
		"another file":                          {foo().with(recordLine("foo-1.0.dist-info/METADATA", other) + "\n" + wheelText), "not the one that its RECORD lists"},
		"another size":                          {foo().with(strings.Replace(metadata, fmt.Sprint(len(fooMetadata)), "7", 1) + wheelText), "not the one that its RECORD lists"},
		"no digest":                             {foo().with("foo-1.0.dist-info/METADATA,,\n" + wheelText), "without a strong digest"},
		"a weak digest":                         {foo().with("foo-1.0.dist-info/METADATA,md5=YQ,\n" + wheelText), "without a strong digest"},
		"a file twice":                          {foo().with(metadata + metadata + wheelText), "twice, in line 2"},
		"a negative size":                       {foo().with(strings.Replace(metadata, ","+fmt.Sprint(len(fooMetadata)), ",-1", 1)), "invalid size in line 1"},
		"two columns":                           {foo().with("a,b\n"), "can't be read"},
		"broken quotes":                         {foo().with("\"a,b,c\n"), "can't be read"},
		"no WHEEL":                              {content{"foo-1.0.dist-info/METADATA", fooMetadata}.recorded(), "no WHEEL"},
		"format 2":                              {content{"foo-1.0.dist-info/METADATA", fooMetadata, "foo-1.0.dist-info/WHEEL", "Wheel-Version: 2.0\n"}.recorded(), "format other than"},
		"no format":                             {content{"foo-1.0.dist-info/METADATA", fooMetadata, "foo-1.0.dist-info/WHEEL", "Tag: x\n"}.recorded(), "which format"},
		"no METADATA":                           {content{"foo-1.0.dist-info/WHEEL", fooWheel}.recorded(), "no METADATA"},
		"metadata of another":                   {content{"foo-1.0.dist-info/METADATA", other, "foo-1.0.dist-info/WHEEL", fooWheel}.recorded(), "of another release"},
		"dist-info of another":                  {content{"foo-1.1.dist-info/METADATA", fooMetadata}.recorded(), "two dist-info folders"},
		"two dist-info":                         {foo("bar-1.0.dist-info/METADATA", "").recorded(), "two dist-info folders"},
		"a path twice":                          {append(foo("foo/a.py", "1").recorded(), "foo/a.py", "2"), "twice"},
		"a path by case":                        {foo("foo/a.py", "1", "foo/A.py", "2").recorded(), "only in case"},
		"a path that leaves":                    {foo("../a.py", "1").recorded(), "leaves the archive"},

		// Installers remove at an uninstall what they keep of RECORD.
		"a line for nothing":        {foo().with(metadata + wheelText + "foo/gone.py,,\n" + own), "does not have, in line 3"},
		"a line for a signature":    {foo().with(metadata + wheelText + "foo-1.0.dist-info/RECORD.jws,,\n" + own), "does not have, in line 3"},
		"a line for a folder":       {foo("foo/a.py", "").with(metadata + wheelText + recordLine("foo/a.py", "") + "\nfoo/,,\n" + own), "does not have, in line 4"},
		"a line that climbs":        {foo().with(metadata + wheelText + "../../../etc/passwd,,\n" + own), "leads out of the wheel, in line 3"},
		"a line that climbs back":   {foo().with("foo/../foo-1.0.dist-info/METADATA,,\n" + metadata + wheelText + own), "leads out of the wheel, in line 1"},
		"an absolute line":          {foo().with(metadata + wheelText + own + "/etc/passwd,sha256=YQ,1\n"), "leads out of the wheel, in line 4"},
		"a line with a dot":         {foo().with(metadata + wheelText + "./foo-1.0.dist-info/WHEEL,,\n" + own), "does not have"},
		"a line of another case":    {foo().with(metadata + wheelText + "FOO-1.0.dist-info/WHEEL,,\n" + own), "does not have"},
		"a line within a line":      {foo().with(metadata + wheelText + "foo-1.0.dist-info/RECORD,x\u2028/etc/passwd,\n"), "control characters"},
		"a carriage return":         {foo().with(metadata + wheelText + "foo-1.0.dist-info/RECORD,x\r/etc/passwd,\n"), "control characters"},
		"a line feed in a field":    {foo().with(metadata + wheelText + "foo-1.0.dist-info/RECORD,\"x\n/etc/passwd,\",\n"), "within a field"},
		"a quote in a field":        {foo().with(metadata + wheelText + "\"a\"\"b\",,\n" + own), "within a field"},
		"no text":                   {foo().with(metadata + wheelText + own + "\xff,,\n"), "no text"},
		"a requirement in a line":   {content{"foo-1.0.dist-info/METADATA", "Name: foo\nVersion: 1.0\nSummary: x\rRequires-Dist: evil\n", "foo-1.0.dist-info/WHEEL", fooWheel}.recorded(), "carriage return"},
		"two files for one place":   {foo("foo/a.py", "1", "foo-1.0.data/purelib/foo/a.py", "2").recorded(), "land in one place"},
		"two schemes for one place": {foo("foo-1.0.data/platlib/a.py", "1", "foo-1.0.data/purelib/a.py", "2").recorded(), "land in one place"},
		"data for the root":         {foo("a.py", "1", "foo-1.0.data/data/lib/python3.11/site-packages/a.py", "2").recorded(), "land in one place"},
		"data for the description":  {foo("foo-1.0.data/purelib/foo-1.0.dist-info/entry_points.txt", "1").recorded(), "own description"},
		"data of another":           {foo("bar-2.data/purelib/a.py", "1").recorded(), "data folder of another name"},
		"data of another case":      {foo("Foo-1.0.data/purelib/a.py", "1").recorded(), "data folder of another name"},
		"data of no scheme":         {foo("foo-1.0.data/a.py", "1").recorded(), "belongs nowhere"},
		"data of its own scheme":    {foo("foo-1.0.data/stdlib/a.py", "1").recorded(), "not understood"},
	} {
		got, err := inspectWheel(t, c.in)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := pypi.New().Inspect(ecosystem.File{Name: "foo-1.0.exe", Kind: policy.KindOther}, nil, wheel(t)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("another kind: %v", err)
	}
}

// TestTrailingBytes: a wheel that another reader would see something else in.
func TestTrailingBytes(t *testing.T) {
	r := wheel(t, foo().recorded()...)
	whole := make([]byte, r.Size())
	if _, err := r.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	f := ecosystem.File{Name: "foo-1.0-py3-none-any.whl", Version: "1.0", Kind: policy.KindWheel}
	if _, err := pypi.New().Inspect(f, nil, bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"behind": append(bytes.Clone(whole), 'x'), "before": append([]byte("MZ"), whole...), "two of them": append(bytes.Clone(whole), whole...)} {
		if _, err := pypi.New().Inspect(f, nil, bytes.NewReader(data)); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func tarGz(t *testing.T, c content) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for i := 0; i < len(c); i += 2 {
		h := &tar.Header{Name: c[i], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(c[i+1]))}
		if target, link := strings.CutPrefix(c[i+1], "-> "); link {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(c[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

func TestInspectSdist(t *testing.T) {
	sdist := func(name string) ecosystem.File {
		return ecosystem.File{Name: name, Version: "1.0", Kind: policy.KindSdist}
	}
	good := content{"foo-1.0/PKG-INFO", fooMetadata, "foo-1.0/setup.py", "", "foo-1.0/src/foo/_vendor/bar-1.dist-info/METADATA", "", "foo-1.0/README", "-> docs/README"}
	want := ecosystem.Inspection{
		Description: ecosystem.Description{Name: "foo", Version: "1.0", Requirements: []ecosystem.Requirement{{Name: "bar", Specifier: ">=1"}}},
		Bundled:     []ecosystem.Bundled{{Name: "bar", Version: "1"}},
	}
	for name, r := range map[string]*bytes.Reader{"foo-1.0.tar.gz": tarGz(t, good), "foo-1.0.tgz": tarGz(t, good), "foo-1.0.zip": wheel(t, good[:6]...)} {
		got, err := pypi.New().Inspect(sdist(name), nil, r)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ecosystem.Inspection{}, "Inside", "Said")); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, c := range map[string]struct {
		file, want string
		in         *bytes.Reader
	}{
		"no PKG-INFO":     {"foo-1.0.tar.gz", "no PKG-INFO", tarGz(t, content{"foo-1.0/setup.py", ""})},
		"in no folder":    {"foo-1.0.tar.gz", "no PKG-INFO", tarGz(t, content{"PKG-INFO", fooMetadata})},
		"two folders":     {"foo-1.0.tar.gz", "more than one folder", tarGz(t, append(good, "bar/x", ""))},
		"another release": {"foo-1.1.tar.gz", "another release", tarGz(t, good)},
		"another project": {"bar-1.0.tar.gz", "another release", tarGz(t, good)},
		"a link":          {"foo-1.0.tar.gz", "is no file", tarGz(t, content{"foo-1.0/PKG-INFO", "-> x"})},
		"a link out":      {"foo-1.0.tar.gz", "out of the archive", tarGz(t, append(good, "foo-1.0/x", "-> ../../etc/passwd"))},
		"another packing": {"foo-1.0.tar.xz", "packed in a way", tarGz(t, good)},
		"a zip as a tar":  {"foo-1.0.tar.gz", "not one that gzip made", wheel(t, good[:6]...)},
	} {
		got, err := pypi.New().Inspect(sdist(c.file), nil, c.in)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	f.Add([]byte("foo-1.0.dist-info/METADATA,sha256=YQ,1\n"), []byte(fooMetadata))
	f.Fuzz(func(t *testing.T, record, metadata []byte) {
		got, err := inspectWheel(t, content{"foo-1.0.dist-info/METADATA", string(metadata), "foo-1.0.dist-info/WHEEL", fooWheel, "foo-1.0.dist-info/RECORD", string(record)})
		if err == nil && (got.Name != "foo" || got.Version != "1.0") {
			t.Errorf("described as %+v", got.Description)
		}
		if err != nil && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("not the file's fault: %v", err)
		}
	})
}

// A wheel's content is told by its paths, its entry points and its files' first bytes.
func TestWhatIsInsideOfAWheel(t *testing.T) {
	got, err := inspectWheel(t, foo(
		"foo/__init__.py", "", "foo/_speed.cpython-312-x86_64-linux-gnu.so", "x", "single.py", "", "native_top.abi3.so", "",
		"foo.pth", "import foo", "foo/data.bin", "\x7fELF and more", "foo-1.0.data/scripts/run-foo", "#!", "foo-1.0.data/purelib/other/__init__.py", "",
		"foo-1.0.dist-info/entry_points.txt", "[console_scripts]\nfoo = foo:main\n# no\n[pytest11]\nhook=foo.hook\n",
	).recorded())
	if err != nil {
		t.Fatal(err)
	}
	in := got.Inside
	in.Paths = nil
	want := ecosystem.Inside{
		Modules: []string{"foo", "native_top", "other", "single"}, EntryPoints: []string{"console_scripts: foo = foo:main", "pytest11: hook=foo.hook", "script: run-foo"},
		Starts: []string{"foo.pth"}, Native: []string{"foo/_speed.cpython-312-x86_64-linux-gnu.so", "foo/data.bin", "native_top.abi3.so"}, Files: 12, Read: 1,
	}
	if diff := cmp.Diff(want, in); diff != "" {
		t.Errorf("the inside differs (-want +got):\n%s", diff)
	}
	if len(got.Inside.Paths) != 12 || got.Inside.Paths[0] != "foo-1.0.data/purelib/other/__init__.py" {
		t.Errorf("the paths are %q", got.Inside.Paths)
	}
}
