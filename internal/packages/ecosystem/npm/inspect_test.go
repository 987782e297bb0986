package npm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
)

// fooFile is what the index lists of foo 1.0.0.
func fooFile() ecosystem.File {
	return ecosystem.File{Name: "foo-1.0.0.tgz", Version: "1.0.0", Path: "/foo/-/foo-1.0.0.tgz"}
}

// rowOf is the manifest that the registry has of foo 1.0.0.
func rowOf(more string) []byte { return []byte(`{"name":"foo","version":"1.0.0"` + more + `}`) }

// tarballOf packs a package.json of foo 1.0.0 with more members, and files.
func tarballOf(tb testing.TB, more string, files ...[2]string) []byte {
	tb.Helper()
	return npmtest.Tarball(tb, append([][2]string{{"package/package.json", string(rowOf(more))}}, files...)...)
}

func inspect(row, tarball []byte) (ecosystem.Inspection, error) {
	return npm.New().Inspect(fooFile(), row, bytes.NewReader(tarball))
}

func TestInspect(t *testing.T) {
	const members = `,"dependencies":{"a":"^1.0.0","b":"npm:real@2"},"optionalDependencies":{"c":"3"},"peerDependencies":{"d":">=4"},"devDependencies":{"e":"u/r"},
		"scripts":{"postinstall":"x","test":"y"},"bin":"./cli.js"`
	got, err := inspect(rowOf(members+`,"hasInstallScript":true`), tarballOf(t, members,
		[2]string{"package/index.js", "x"},
		[2]string{"package/binding.gyp", "{}"},
		[2]string{"package/npm-shrinkwrap.json", "{}"},
		[2]string{"package/node_modules/x/package.json", `{"name":"x","version":"v1.2.3"}`},
		[2]string{"package/node_modules/x/node_modules/@s/y/package.json", `{"name":"@s/y"}`},
		[2]string{"package/node_modules/alias/package.json", `{"name":"real","version":"1.0.0"}`},
		[2]string{"package/dist/node_modules/z/package.json", `not json`},
		[2]string{"package/node_modules/x/lib/package.json", `{"type":"module"}`},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := ecosystem.Inspection{
		Description: ecosystem.Description{Name: "foo", Version: "1.0.0", Requirements: []ecosystem.Requirement{
			{Name: "a", Specifier: "^1.0.0"}, {Name: "real", Specifier: "2"}, {Name: "c", Specifier: "3", Optional: true}, {Name: "d", Specifier: ">=4"},
		}},
		Scripts:  []string{"postinstall", "binding.gyp"},
		Bundled:  []ecosystem.Bundled{{Name: "x", Version: "1.2.3"}, {Name: "@s/y"}, {Name: "alias", Version: "1.0.0"}, {Name: "real", Version: "1.0.0"}, {Name: "z"}},
		Findings: []string{"it brings a lockfile for its own dependencies (npm-shrinkwrap.json)"},
	}
	if got.Contents == "" {
		t.Error("nothing says what it consists of")
	}
	got.Contents = "" // TestContentsOfATarball asks for it
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ecosystem.Inspection{}, "Inside", "Said")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestManifestConfusion: what the package.json says and the manifest does not is
// refused; the other way round it is found.
// TestContentsOfATarball: what a tarball consists of is all its files below its folder,
// whole, also those that are looked into.
func TestContentsOfATarball(t *testing.T) {
	files := [][2]string{
		{"lib/a.js", "a"},
		{"lib/.npmignore", "x"},
		{"binding.gyp", "{}"},
		{"node_modules/x/package.json", `{"name":"x","version":"1.0.0"}`},
	}
	want := digest.Files{}
	var packed [][2]string
	for _, f := range append(files, [2]string{"package.json", string(rowOf(""))}) {
		if err := want.Add(f[0], strings.NewReader(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		packed = append(packed, [2]string{"package/" + f[0], f[1]})
	}
	got, err := inspect(nil, tarballOf(t, "", packed...))
	if err != nil || got.Contents != want.Digest() {
		t.Errorf("it consists of %s, want %s (%v)", got.Contents, want.Digest(), err)
	}
	packed[0][1] = "b"
	if other, err := inspect(nil, tarballOf(t, "", packed...)); err != nil || other.Contents == got.Contents {
		t.Errorf("a changed file changes nothing (%v)", err)
	}
}

func TestManifestConfusion(t *testing.T) {
	for name, c := range map[string]struct {
		own, row string
		files    []string
		want     string // of the error, or of a finding after a "+"; "" is nothing
	}{
		"equal":                     {`,"dependencies":{"a":"1"}`, `,"dependencies":{"a":"1"}`, nil, ""},
		"hidden dependency":         {`,"dependencies":{"a":"1"}`, ``, nil, "requires a"},
		"hidden optional":           {`,"optionalDependencies":{"a":"1"}`, ``, nil, "requires a"},
		"hidden peer":               {`,"peerDependencies":{"a":"1"}`, ``, nil, "has the peer a"},
		"peer as dependency":        {`,"peerDependencies":{"a":"1"}`, `,"dependencies":{"a":"1"}`, nil, "has the peer a"},
		"other range":               {`,"dependencies":{"a":">=1"}`, `,"dependencies":{"a":"1"}`, nil, "a in other versions"},
		"hidden URL":                {`,"dependencies":{"a":"u/r"}`, `,"dependencies":{"a":"1"}`, nil, "a in other versions"},
		"blanks":                    {`,"dependencies":{"a":" >=1  <2 ","b":""}`, `,"dependencies":{"a":">=1 <2","b":"*"}`, nil, ""},
		"moved to optional":         {`,"dependencies":{"a":"1"},"optionalDependencies":{"a":"1"}`, `,"optionalDependencies":{"a":"1"}`, nil, ""},
		"moved to dependencies":     {`,"optionalDependencies":{"a":"1"}`, `,"dependencies":{"a":"1"}`, nil, ""},
		"hostile name":              {`,"dependencies":{"../a":"1"}`, ``, nil, "a name that no package can have"},
		"invented dependency":       {``, `,"dependencies":{"a":"1"}`, nil, "+requires something"},
		"dependency list":           {`,"dependencies":["a"]`, ``, nil, "a dependencies of a form"},
		"no dependencies, old":      {`,"dependencies":[],"bin":false,"scripts":""`, ``, nil, ""},
		"hidden script":             {`,"scripts":{"preinstall":"x"}`, ``, nil, "(preinstall)"},
		"hidden second script":      {`,"scripts":{"preinstall":"x","install":"y"}`, `,"scripts":{"preinstall":"x"}`, nil, "(install)"},
		"script behind a flag":      {`,"scripts":{"install":"x"}`, `,"hasInstallScript":true`, nil, ""},
		"empty script":              {`,"scripts":{"install":""}`, ``, nil, ""},
		"other script":              {`,"scripts":{"prepare":"x"}`, ``, nil, ""},
		"invented script":           {``, `,"scripts":{"install":"x"}`, nil, "+install script"},
		"hidden gyp":                {``, ``, []string{"binding.gyp"}, "(binding.gyp)"},
		"gyp of the manifest":       {``, `,"gypfile":true,"scripts":{"install":"node-gyp rebuild"}`, []string{"binding.gyp"}, ""},
		"gyp below":                 {``, ``, []string{"deps/binding.gyp"}, ""},
		"gyp switched off":          {`,"gypfile":false`, ``, []string{"binding.gyp"}, ""},
		"hidden command":            {`,"bin":{"ls":"x"}`, ``, nil, "a command"},
		"hidden own command":        {`,"bin":"x"`, ``, nil, "a command"},
		"hidden second command":     {`,"bin":{"foo":"x","ls":"x"}`, `,"bin":{"foo":"x"}`, nil, "a command"},
		"hidden folder of commands": {`,"directories":{"bin":"./b"}`, ``, nil, "a folder of commands"},
		"folder of commands":        {`,"directories":{"bin":"./b"}`, `,"bin":{"x":"b/x"}`, nil, ""},
		"same folder of commands":   {`,"directories":{"bin":"./b/"}`, `,"directories":{"bin":"b"}`, nil, ""},
		"command spelled":           {`,"bin":"./cli.js"`, `,"bin":{"foo":"cli.js"}`, nil, ""},
		"command below":             {`,"bin":{"../../ls":"./../cli.js"}`, `,"bin":{"ls":"cli.js"}`, nil, ""},
		"commands listed":           {`,"bin":["./b/x"]`, `,"bin":{"x":"b/x"}`, nil, ""},
		"command of another file":   {`,"bin":"a.js"`, `,"bin":"b.js"`, nil, "+a command"},
		"invented command":          {``, `,"bin":"b.js"`, nil, "+a command"},
		"said twice, alike":         {`,"scripts":{"test":"x"},"scripts":{"test":"y"}`, ``, nil, "+none of which decides"},
		"scripts twice":             {`,"scripts":{"install":"x"},"scripts":{"test":"y"}`, ``, nil, "one thing twice"},
		"dependencies twice":        {`,"dependencies":{"a":"1"},"dependencies":{}`, `,"dependencies":{"a":"1"}`, nil, "one thing twice"},
		"dependency twice":          {`,"dependencies":{"a":"1","a":"2"}`, `,"dependencies":{"a":"2"}`, nil, "a dependencies of a form"},
		"script twice":              {`,"scripts":{"install":"","install":"x"}`, `,"hasInstallScript":true`, nil, "a scripts of a form"},
		"name twice":                {`,"name":"bar"`, ``, nil, "one thing twice"},
		"not UTF-8":                 {",\"author\":\"\xe9\"", ``, nil, "+none of which decides"},
	} {
		var files [][2]string
		for _, f := range c.files {
			files = append(files, [2]string{"package/" + f, ""})
		}
		got, err := inspect(rowOf(c.row), tarballOf(t, c.own, files...))
		finding, isFinding := strings.CutPrefix(c.want, "+")
		found := strings.Join(got.Findings, "\n")
		switch {
		case c.want == "" && (err != nil || found != ""):
			t.Errorf("%s: %q, %v; want nothing", name, found, err)
		case isFinding && (err != nil || !strings.Contains(found, finding)):
			t.Errorf("%s: %q, %v; want the finding %q", name, found, err, finding)
		case c.want != "" && !isFinding && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// TestBundledScripts: npm runs the install scripts of the packages that a package
// brings along, of which no manifest speaks.
func TestBundledScripts(t *testing.T) {
	const script = `{"name":"x","scripts":{"postinstall":"y"}}`
	for path, c := range map[string]struct {
		content string
		runs    bool
	}{
		"node_modules/x/package.json":                     {script, true},
		"node_modules/@s/x/package.json":                  {script, true},
		"node_modules/a/node_modules/@s/x/package.json":   {script, true},
		"node_modules/x/binding.gyp":                      {"{}", true},
		"node_modules/y/package.json":                     {`{"name":"x","scripts":{"install":"y"},"scripts":{}}`, true},
		"node_modules/z/package.json":                     {`{"scripts":{"test":"y"}}`, false},
		"node_modules/x/test/package.json":                {script, false},
		"node_modules/x/test/node_modules/y/package.json": {script, false},
		"test/node_modules/x/package.json":                {script, false},
		"node_modules/x/deps/binding.gyp":                 {"{}", false},
	} {
		files := [][2]string{}
		for i := range ecosystem.MaxBundled { // whatever comes before it
			files = append(files, [2]string{"package/node_modules/b" + strconv.Itoa(i) + "/package.json", "{}"})
		}
		got, err := inspect(rowOf(""), tarballOf(t, "", append(files, [2]string{"package/" + path, c.content})...))
		if err != nil || (len(got.Scripts) > 0) != c.runs {
			t.Errorf("%s: %q, %v; runs is %t", path, got.Scripts, err, c.runs)
		}
	}
}

// TestHostileTarballs: what two readers would read differently is refused.
func TestHostileTarballs(t *testing.T) {
	pj := [2]string{"package/package.json", string(rowOf(""))}
	pack := func(files ...[2]string) []byte { return npmtest.Tarball(t, append([][2]string{pj}, files...)...) }
	alone := func(document string) []byte {
		return npmtest.Tarball(t, [2]string{"package/package.json", document})
	}
	good := pack()
	if _, err := inspect(rowOf(""), good); err != nil {
		t.Fatalf("the good tarball is refused: %v", err)
	}
	for name, c := range map[string]struct {
		tarball []byte
		want    string
	}{
		"empty":               {nil, ""},
		"no gzip":             {[]byte("x"), "gzip"},
		"cut":                 {good[:len(good)-20], ""},
		"something behind":    {append(bytes.Clone(good), good...), "after its end"},
		"no package.json":     {npmtest.Tarball(t, [2]string{"package/x.json", "{}"}), "no package.json"},
		"package.json below":  {npmtest.Tarball(t, [2]string{"package/x/package.json", "{}"}), "no package.json"},
		"package.json a link": {linked(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "package/package.json", Linkname: "x"}), "a link where"},
		"climbing":            {pack([2]string{"package/../../x", ""}), "leaves the archive"},
		"absolute":            {pack([2]string{"/etc/x", ""}), "absolute"},
		"two tops":            {pack([2]string{"evil/package.json", "{}"}), "two folders"},
		"a file at the top":   {npmtest.Tarball(t, [2]string{"package.json", "{}"}), "at its top"},
		"twice":               {pack([2]string{"package/package.json", "{}"}), "a file twice"},
		"twice with a dot":    {pack([2]string{"package/./package.json", string(rowOf(`,"x":1`))}), "a file twice"},
		"in another case":     {pack([2]string{"package/PACKAGE.json", ""}), "in case"},
		"a link out":          {linked(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "package/x", Linkname: "../../etc"}), "link out of"},
		"a hard link out":     {linked(t, tar.Header{Typeflag: tar.TypeLink, Name: "package/x", Linkname: "/etc/passwd"}), "link"},
		"a hard link":         {linked(t, tar.Header{Typeflag: tar.TypeLink, Name: "package/binding.gyp", Linkname: "package/package.json"}, pj), "hard link"},
		"a link to build by":  {linked(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "package/binding.gyp", Linkname: "x"}, pj), "a link where"},
		"a link to modules":   {linked(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "package/node_modules", Linkname: "x"}, pj), "a link where"},
		"a dot before":        {npmtest.Tarball(t, [2]string{"./package/package.json", string(rowOf(""))}), "not clean"},
		"lost by some":        {linked(t, tar.Header{Typeflag: tar.TypeReg, Name: "package/ü", Format: tar.FormatPAX}, pj), "outside of ASCII"},
		"2 GiB":               {begun(t, 1<<31), "more than 2147483647 bytes"},
		"a drive":             {pack([2]string{"package/c:binding.gyp", ""}), "drive letter"},
		"a drive's root":      {pack([2]string{"package/c:/package.json", ""}), "drive letter"},
		"a line feed in pax":  {linked(t, tar.Header{Typeflag: tar.TypeReg, Name: "package/x", PAXRecords: map[string]string{"comment": "hello\n31 path=package/binding.gyp"}}, pj), "control character"},
		"a device":            {linked(t, tar.Header{Typeflag: tar.TypeChar, Name: "package/x"}), "neither"},
		"other name":          {alone(`{"name":"bar","version":"1.0.0"}`), `about "bar"`},
		"other version":       {alone(`{"name":"foo","version":"1.0.1"}`), `version "1.0.1"`},
		"no name":             {alone(`{"version":"1.0.0"}`), `about ""`},
		"name a number":       {alone(`{"name":1,"version":"1.0.0"}`), "a name of a form"},
		"not JSON":            {alone(`{"name":`), "no JSON"},
		"nothing":             {alone(``), "no JSON object"},
		"a list":              {alone(`[]`), "no JSON object"},
		"goes on":             {alone(string(rowOf("")) + "{}"), "after its end"},
		"deep":                {alone(strings.Repeat(`{"a":`, 20_000)), "no JSON"},
		"huge":                {alone(string(rowOf(`,"x":"` + strings.Repeat("x", 5<<20) + `"`))), "more than 4 MiB"},
	} {
		if got, err := inspect(rowOf(""), c.tarball); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, c.want)
		}
	}
	for name, tarball := range map[string][]byte{
		"another top":       npmtest.Tarball(t, [2]string{"node/package.json", string(rowOf(""))}),
		"twice, alike":      pack([2]string{"package/x", "y"}, [2]string{"package/./x", "y"}),
		"a link":            linked(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "package/x", Linkname: "package.json"}, pj),
		"a byte order mark": alone("\ufeff" + string(rowOf(""))),
		"a v":               alone(`{"name":"foo","version":" =v1.0.0+build "}`),
		"a blank":           alone(`{"name":" foo ","version":"1.0.0"}`),
		"zeros behind":      append(pack(), make([]byte, 512)...),
	} {
		if _, err := inspect(rowOf(""), tarball); err != nil {
			t.Errorf("%s: %v; want it to pass", name, err)
		}
	}
	if _, err := inspect(nil, good); err != nil {
		t.Errorf("without a manifest: %v", err)
	}
	if _, err := npm.New().Inspect(ecosystem.File{Name: "x", Path: "/x"}, nil, bytes.NewReader(good)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("at another path: %v", err)
	}
}

// linked is a tarball with one special member.
func linked(tb testing.TB, h tar.Header, files ...[2]string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	write := func(h *tar.Header, content string) {
		if err := w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			tb.Fatal(err)
		}
	}
	for _, f := range files {
		write(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o644}, f[1])
	}
	write(&h, "")
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// begun is a tarball that ends after the header of a file of so many bytes.
func begun(tb testing.TB, size int64) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "package/x", Size: size, Mode: 0o644}), z.Close()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// TestBundledBound: what is listed of bundled packages is bounded.
func TestBundledBound(t *testing.T) {
	var files [][2]string
	for i := range ecosystem.MaxBundled + 10 {
		files = append(files, [2]string{"package/node_modules/x" + strings.Repeat("y", i%100) + string(rune('a'+i/100)) + "/package.json", "{}"})
	}
	got, err := inspect(rowOf(""), tarballOf(t, "", files...))
	if err != nil || len(got.Bundled) != ecosystem.MaxBundled {
		t.Errorf("listed %d, %v; want %d", len(got.Bundled), err, ecosystem.MaxBundled)
	}
}

func TestWhatIsInsideOfATarball(t *testing.T) {
	got, err := inspect(nil, tarballOf(t, `,"bin":{"foo":"bin/foo"}`, [2]string{"package/bin/foo", "\x7fELF..."}, [2]string{"package/build/x.node", "x"}, [2]string{"package/index.js", "MZ"[:1]}))
	if err != nil {
		t.Fatal(err)
	}
	want := ecosystem.Inside{
		EntryPoints: []string{"bin: foo = bin/foo"}, Native: []string{"bin/foo", "build/x.node"},
		Paths: []string{"bin/foo", "build/x.node", "index.js", "package.json"}, Files: 4,
	}
	if diff := cmp.Diff(want, got.Inside); diff != "" {
		t.Errorf("the inside differs (-want +got):\n%s", diff)
	}
}
