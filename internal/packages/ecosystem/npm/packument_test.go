package npm_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm"
)

const (
	sri512 = "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
	sha1A  = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

func hex512() string { return "sha512:" + strings.Repeat("00", 64) }

// manifest is a release of foo as a registry writes it; more are further
// members, with a comma before each.
func manifest(version, more string) string {
	return fmt.Sprintf(`%q:{"name":"foo","version":%q,"dist":{"tarball":"https://files.example/foo/-/foo-%s.tgz","integrity":%q}%s}`, version, version, version, sri512, more)
}

// document is a packument of foo.
func document(releases ...string) string {
	return `{"name":"foo","dist-tags":{},"versions":{` + strings.Join(releases, ",") + `}}`
}

func parse(tb testing.TB, body string) (*ecosystem.Index, *ecosystem.MemoryRows, error) {
	tb.Helper()
	rows := &ecosystem.MemoryRows{}
	ix, err := npm.New().ParseIndex("foo", ecosystem.PageOf("https://index.example/foo", typeFull, []byte(body)), rows)
	return ix, rows, err
}

func parsed(tb testing.TB, body string) (*ecosystem.Index, *ecosystem.MemoryRows) {
	tb.Helper()
	ix, rows, err := parse(tb, body)
	if err != nil {
		tb.Fatal(err)
	}
	return ix, rows
}

func TestParseFacts(t *testing.T) {
	ix, rows := parsed(t, `{"_id":"foo","name":"foo","dist-tags":{"latest":"1.1.0","next":"2.0.0-rc.1","gone":"9.0.0","odd tag":"1.0.0"},"versions":{`+strings.Join([]string{
		manifest("1.0.0", `,"scripts":{"test":"x","postinstall":""},"_nodeVersion":"20","_npmUser":{"name":"a"},"readme":"long","deprecated":"do not use"`),
		manifest("1.1.0", `,"gypfile":true, "dependencies" : { "bar" : "^1.0.0 || >= 2" }, "devDependencies":{"x":"git+https://code.example/x"}`),
		manifest("2.0.0-rc.1", `,"scripts":{"install":"node-gyp rebuild"}`),
		`"0.1.0":{"dist":{"shasum":"` + strings.ToUpper(sha1A) + `","tarball":"../foo/-/foo-0.1.0.tgz","size":77},"version":"0.1.0","name":"foo","hasInstallScript":true}`,
		`"0.2.0":{"name":"foo","version":"0.2.0","dist":{"tarball":"https://index.example/foo/-/foo-0.2.0.tgz"}}`,
	}, ",")+`},"time":{"created":"2020-01-01T00:00:00.000Z","1.0.0":"2020-01-02T04:04:05.678+01:00","1.1.0":"yesterday","2.0.0-rc.1":5,"7.0.0":"2020-01-02T03:04:05Z"},"readme":"long"}`)
	file := func(version, digest, host string, f ecosystem.File) ecosystem.File {
		f.Name, f.Version, f.Kind, f.Digest = "foo-"+version+".tgz", version, policy.KindPackage, digest
		f.Path = "/foo/-/" + f.Name
		f.URL = "https://" + host + f.Path
		return f
	}
	want := []ecosystem.File{
		file("1.0.0", hex512(), "files.example", ecosystem.File{Published: time.Date(2020, 1, 2, 3, 4, 5, 678e6, time.UTC)}),
		file("1.1.0", hex512(), "files.example", ecosystem.File{Scripts: true}),
		file("2.0.0-rc.1", hex512(), "files.example", ecosystem.File{Scripts: true}),
		file("0.1.0", "sha1:"+sha1A, "index.example", ecosystem.File{Size: 77, Scripts: true}),
		file("0.2.0", "", "index.example", ecosystem.File{}),
	}
	if diff := cmp.Diff(want, ix.Files, cmpopts.IgnoreFields(ecosystem.File{}, "Manifest", "Rows")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"latest": "1.1.0", "next": "2.0.0-rc.1", "gone": "1.1.0"}, ix.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	row, err := ecosystem.Slice(rows, ix.Files[0].Manifest)
	if err != nil {
		t.Fatal(err)
	}
	wantRow := `{"name":"foo","version":"1.0.0","dist":{"tarball":"https://files.example/foo/-/foo-1.0.0.tgz","integrity":"` + sri512 + `"},"scripts":{"test":"x","postinstall":""},"_npmUser":{"name":"a"},"deprecated":"do not use"}`
	if string(row) != wantRow {
		t.Errorf("the manifest is\n%s\nwant\n%s", row, wantRow)
	}
	short, err := ecosystem.Slice(rows, ix.Files[1].Rows[0])
	if err != nil {
		t.Fatal(err)
	}
	wantRow = `{"name":"foo","version":"1.1.0","dist":{"tarball":"https://files.example/foo/-/foo-1.1.0.tgz","integrity":"` + sri512 + `"},"dependencies":{"bar":"^1.0.0 || >= 2"},"hasInstallScript":true}`
	if string(short) != wantRow {
		t.Errorf("the abbreviated manifest is\n%s\nwant\n%s", short, wantRow)
	}
}

// TestMemberOrder: members may come in any order, and the page is the same.
func TestMemberOrder(t *testing.T) {
	members := []string{
		`"name":"foo"`, `"dist-tags":{"latest":"1.0.0"}`, `"time":{"1.0.0":"2020-01-01T00:00:00.000Z","modified":"2021-01-01T00:00:00.000Z"}`,
		`"versions":{` + manifest("1.0.0", "") + `}`, `"license":"MIT"`,
	}
	var want string
	for range len(members) {
		members = append(members[1:], members[0])
		ix, rows := parsed(t, "{"+strings.Join(members, ",")+"}")
		got := rendered(t, ix, rows, "full", "")
		if want == "" {
			want = got
		}
		if got != want || ix.Files[0].Published.Year() != 2020 || ix.Tags["latest"] != "1.0.0" {
			t.Errorf("in the order %v the page is\n%s", members, got)
		}
	}
}

// TestMirrors: tarballs are where registries other than the first keep them.
func TestMirrors(t *testing.T) {
	for link, want := range map[string]string{ // tarball to the path, or "" if it is left out
		"https://index.example/@s/foo/-/foo-1.0.0.tgz":           "/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/@s%2ffoo/-/foo-1.0.0.tgz":         "/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/api/npm/@s%2Ffoo/-/foo-1.0.0.tgz": "/api/npm/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/@s/foo/-/@s/foo-1.0.0.tgz":        "/@s/foo/-/@s/foo-1.0.0.tgz",
		"http://index.example:8081/@s/foo/-/foo-1.0.0.tgz?a=b#c": "/@s/foo/-/foo-1.0.0.tgz",
		"//files.example/@s/foo/-/foo-1.0.0.tgz":                 "/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/@s/foo/-/foo-1.0.1.tgz":           "",
		"https://index.example/@s/bar/-/foo-1.0.0.tgz":           "",
		"https://index.example/@t/foo/-/foo-1.0.0.tgz":           "",
		"https://index.example/foo/-/foo-1.0.0.tgz":              "",
		"https://index.example/@s/foo/foo-1.0.0.tgz":             "/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/download/@s/foo/1.0.0/0123abcd":   "/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/@s/foo/-/foo.tgz?sig=abc":         "/@s/foo/-/foo-1.0.0.tgz",
		"/files/0123abcd": "/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/@s/foo/-/../foo-1.0.0.tgz":  "/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/@s%252ffoo/-/foo-1.0.0.tgz": "",
		"https://u:p@index.example/@s/foo/-/foo-1.0.0.tgz": "",
		"file:///@s/foo/-/foo-1.0.0.tgz":                   "",
		"ftp://index.example/@s/foo/-/foo-1.0.0.tgz":       "",
		"https:///@s/foo/-/foo-1.0.0.tgz":                  "",
		"https://[::1/@s/foo/-/foo-1.0.0.tgz":              "",
		"":                                                 "",
	} {
		body := fmt.Sprintf(`{"name":"@s/foo","versions":{"1.0.0":{"name":"@s/foo","version":"1.0.0","dist":{"tarball":%q,"shasum":%q}}}}`, link, sha1A)
		ix, err := npm.New().ParseIndex("@s/foo", ecosystem.PageOf("https://index.example/@s%2ffoo", typeFull, []byte(body)), &ecosystem.MemoryRows{})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case want == "" && (len(ix.Files) != 0 || len(ix.LeftOut) != 1 || ix.LeftOut[0].Reason == ""):
			t.Errorf("%s: %+v; want it left out", link, ix)
		case want != "" && (len(ix.Files) != 1 || ix.Files[0].Path != want || !strings.HasSuffix(ix.Files[0].ClientURL(), "example"+want) && !strings.Contains(link, "%2")):
			t.Errorf("%s: %+v; want %s", link, ix, want)
		}
	}
}

// TestAPlaceOfItsOwnIsBelowItsRegistry: two registries of one host are not mixed up by paths that clients are shown.
func TestAPlaceOfItsOwnIsBelowItsRegistry(t *testing.T) {
	for page, want := range map[string]string{
		"https://index.example/@s%2ffoo":         "https://index.example/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example/npm/own/@s%2Ffoo": "https://index.example/npm/own/@s/foo/-/foo-1.0.0.tgz",
		"https://index.example:8443/npm/@s/foo":  "https://index.example/npm/@s/foo/-/foo-1.0.0.tgz",
		"https://other.example/npm/@s/foo":       "https://index.example/@s/foo/-/foo-1.0.0.tgz",
	} {
		host := "https://index.example"
		if strings.Contains(page, ":8443") {
			host += ":8443"
		}
		body := fmt.Sprintf(`{"name":"@s/foo","versions":{"1.0.0":{"name":"@s/foo","version":"1.0.0","dist":{"tarball":%q,"shasum":%q}}}}`, host+"/files/4711", sha1A)
		ix, err := npm.New().ParseIndex("@s/foo", ecosystem.PageOf(page, typeFull, []byte(body)), &ecosystem.MemoryRows{})
		if err != nil {
			t.Fatal(err)
		}
		if len(ix.Files) != 1 || ix.Files[0].ClientURL() != want || !strings.HasSuffix(want, ix.Files[0].Path) {
			t.Errorf("%s: %+v; want %s", page, ix, want)
		}
	}
}

func TestLeftOut(t *testing.T) {
	for name, c := range map[string]struct{ release, reason string }{
		"loose version":      {`"1.0":{"name":"foo","version":"1.0"}`, "not a semantic version"},
		"version with v":     {`"v1.0.0":{"name":"foo","version":"v1.0.0"}`, "not a semantic version"},
		"prototype":          {`"__proto__":{"name":"foo"}`, "not a semantic version"},
		"no object":          {`"1.0.0":[]`, "no object"},
		"other name":         {strings.Replace(manifest("1.0.0", ""), `"name":"foo"`, `"name":"bar"`, 1), "another name"},
		"other version":      {strings.Replace(manifest("1.0.0", ""), `"version":"1.0.0"`, `"version":"1.0.1"`, 1), "another version"},
		"no dist":            {`"1.0.0":{"name":"foo","version":"1.0.0"}`, "no tarball"},
		"dist a text":        {`"1.0.0":{"name":"foo","version":"1.0.0","dist":"x"}`, "no tarball"},
		"no tarball":         {`"1.0.0":{"name":"foo","version":"1.0.0","dist":{"shasum":"` + sha1A + `"}}`, "no tarball"},
		"integrity an array": {strings.Replace(manifest("1.0.0", ""), `"`+sri512+`"`, `["x"]`, 1), "something else than a text"},
		"integrity short":    {strings.Replace(manifest("1.0.0", ""), sri512, "sha512-AAAA", 1), "wrong length"},
		"dependency list":    {manifest("1.0.0", `,"dependencies":["bar"]`), "dependencies has a form"},
		"dependency text":    {manifest("1.0.0", `,"dependencies":"bar"`), "dependencies has a form"},
		"dependency object":  {manifest("1.0.0", `,"dependencies":{"bar":{"version":"1"}}`), "dependencies has a form"},
		"git":                {manifest("1.0.0", `,"dependencies":{"bar":"git+https://code.example/bar.git"}`), "it requires bar by a URL"},
		"tarball":            {manifest("1.0.0", `,"optionalDependencies":{"bar":"https://code.example/bar.tgz"}`), "it requires bar by a URL"},
		"shortcut":           {manifest("1.0.0", `,"peerDependencies":{"bar":"user/bar#semver:^1"}`), "it requires bar by a URL"},
		"alias of a URL":     {manifest("1.0.0", `,"dependencies":{"bar":"npm:git+https://code.example/x"}`), "it requires bar by a URL"},
		"hostile name":       {manifest("1.0.0", `,"dependencies":{"../bar":"1"}`), "a name that no package can have"},
	} {
		ix, _ := parsed(t, document(manifest("0.0.1", ""), c.release, manifest("3.0.0", "")))
		if len(ix.Files) != 2 || len(ix.LeftOut) != 1 || !strings.Contains(ix.LeftOut[0].Reason, c.reason) {
			t.Errorf("%s: %d files, left out %+v; want %q", name, len(ix.Files), ix.LeftOut, c.reason)
		}
	}
}

func TestRefusesWholePage(t *testing.T) {
	good := manifest("1.0.0", "")
	for name, body := range map[string]string{
		"duplicate member":     `{"name":"foo","name":"foo","versions":{}}`,
		"duplicate version":    document(good, good),
		"duplicate in release": document(manifest("1.0.0", `,"name":"foo"`)),
		"duplicate in dist":    document(strings.Replace(good, `"integrity"`, `"tarball":"x","integrity"`, 1)),
		"duplicate skipped":    `{"name":"foo","versions":{` + good + `},"users":{"a":true,"a":true}}`,
		"duplicate dependency": document(manifest("1.0.0", `,"dependencies":{"a":"1","a":"2"}`)),
		"other project":        `{"name":"bar","versions":{}}`,
		"no name":              `{"versions":{}}`,
		"name a number":        `{"name":1,"versions":{}}`,
		"other case":           `{"Name":"foo","versions":{}}`,
		"versions a list":      `{"name":"foo","versions":[]}`,
		"tags a list":          `{"name":"foo","dist-tags":["x"],"versions":{}}`,
		"tags of numbers":      `{"name":"foo","dist-tags":{"latest":1},"versions":{}}`,
		"times a list":         `{"name":"foo","time":[],"versions":{}}`,
		"a lone surrogate":     document(manifest("1.0.0", `,"description":"\ud800"`)),
		"goes on":              document(good) + "{}",
		"an error":             `{"error":"not found"}`,
		"a list":               `[` + document(good) + `]`,
		"a huge value":         document(manifest("1.0.0", `,"description":"`+strings.Repeat("x", 9<<20)+`"`)),
		"a huge manifest":      document(manifest("1.0.0", hugeManifest())),
	} {
		if ix, _, err := parse(t, body); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, ix, err)
		}
	}
	if _, _, err := parse(t, `{"name":"foo","time":{"unpublished":{"name":"x"}}}`); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a package without releases: %v; want fault.ErrNotFound", err)
	}
}

// hugeManifest has members none of which is too large by itself.
func hugeManifest() string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, `,"x%d":%q`, i, strings.Repeat("x", 1<<20))
	}
	return b.String()
}

// TestReaderFails: what the page's reader or the rows say is not the page's fault.
func TestReaderFails(t *testing.T) {
	broken := errors.New("broken")
	page := ecosystem.Page{URL: "https://index.example/foo", ContentType: typeFull, Body: io.MultiReader(strings.NewReader(`{"name":"foo",`), errorReader{broken})}
	if _, err := npm.New().ParseIndex("foo", page, &ecosystem.MemoryRows{}); !errors.Is(err, broken) || errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a page that can't be read: %v", err)
	}
	page = ecosystem.PageOf("https://index.example/foo", typeFull, []byte(document(manifest("1.0.0", ""))))
	if _, err := npm.New().ParseIndex("foo", page, fullDisk{broken}); !errors.Is(err, broken) || errors.Is(err, fault.ErrInvalid) {
		t.Errorf("rows that can't be written: %v", err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

type fullDisk struct{ err error }

func (d fullDisk) Append([]byte) (ecosystem.Extent, error) { return ecosystem.Extent{}, d.err }

func TestListed(t *testing.T) {
	ix, rows := parsed(t, document(manifest("1.0.0", `,"dependencies":{"a":"^1.0.0  ||  >=2","b":"*","c":"latest","d":"npm:real@~1.2","e":"npm:@s/real","f":"ignore all previous instructions","g":""},
		"optionalDependencies":{"a":"^1.0.0 || >=2","h":"1.x - 2"},"peerDependencies":{"i":">= 1.0.0 < 3"},"devDependencies":{"j":"1"}`)))
	row, err := ecosystem.Slice(rows, ix.Files[0].Manifest)
	if err != nil {
		t.Fatal(err)
	}
	got, err := npm.New().Listed(ix.Files[0], row)
	if err != nil {
		t.Fatal(err)
	}
	want := []ecosystem.Requirement{
		{Name: "a", Specifier: "^1.0.0 || >=2", Optional: true},
		{Name: "b"},
		{Name: "c", Specifier: "latest"},
		{Name: "real", Specifier: "~1.2"},
		{Name: "@s/real"},
		{Name: "g"},
		{Name: "h", Specifier: "1.x - 2", Optional: true},
		{Name: "i", Specifier: ">= 1.0.0 < 3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDirectSpecs: what npm reads as something else than a version of a package
// of the registry is direct, and everything else is not.
func TestDirectSpecs(t *testing.T) {
	for _, spec := range []string{
		"git+ssh://git@code.example/x.git", "git://code.example/x", "git@code.example:x/y.git", "http://code.example/x.tgz", "HTTPS://code.example/x",
		"github:u/r", "gitlab:u/r", "bitbucket:u/r", "gist:11", "u/r", "u/r#v1", "file:../x", "FILE:x", "link:../x", "portal:x", "workspace:*", "workspace:^1",
		"patch:x@1#y", "catalog:", "jsr:@s/x@1", "./x", "../x", "~/x", "/x", ".", "..", "x.tgz", "x.TAR.GZ", "x.tar", `C:\x`, "c:x", `\\host\x`, " git://code.example/x ", "npm:", "npm:../x@1", "npm:npm:x@1",
	} {
		ix, _ := parsed(t, document(manifest("1.0.0", fmt.Sprintf(`,"dependencies":{"bar":%q}`, spec))))
		if len(ix.LeftOut) != 1 || !strings.Contains(ix.LeftOut[0].Reason, "requires bar by") {
			t.Errorf("%q is served: %+v", spec, ix)
		}
	}
	for _, spec := range []string{"", "*", "1", "^1.2.3", "~1", ">=1 <2 || 3.x", "1.0.0 - 2.0.0", "latest", "next-7", "=v1.0.0", "npm:x@1", "npm:@s/x@^1", "NPM:x", "not a range", "x.y"} {
		ix, _ := parsed(t, document(manifest("1.0.0", fmt.Sprintf(`,"dependencies":{"bar":%q}`, spec))))
		if len(ix.Files) != 1 {
			t.Errorf("%q is left out: %+v", spec, ix.LeftOut)
		}
	}
}

func TestTooManyReleases(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"name":"foo","versions":{`)
	for i := range ecosystem.MaxFiles + 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%d.0.0":{}`, i)
	}
	b.WriteString("}}")
	if _, _, err := parse(t, b.String()); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("ParseIndex = %v", err)
	}
}

// manyReleases is a packument of n releases with about size bytes of manifest each.
func manyReleases(n, size int) string {
	filler := fmt.Sprintf(`,"description":%q,"devDependencies":{"a":"^1.0.0","b":"^2.0.0"},"dependencies":{"c":"~1.2.3","d":">=4"}`, strings.Repeat("x", size))
	releases := make([]string, n)
	for i := range releases {
		releases[i] = manifest(fmt.Sprintf("%d.%d.0", i/100, i%100), filler)
	}
	return document(releases...)
}

// TestMemory: reading takes no memory that grows with the page's bytes.
func TestMemory(t *testing.T) {
	body := manyReleases(500, 40<<10) // 20 MB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	page := ecosystem.Page{URL: "https://index.example/foo", ContentType: typeFull, Body: strings.NewReader(body)}
	if _, err := npm.New().ParseIndex("foo", page, discard{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took, most := after.TotalAlloc-before.TotalAlloc, uint64(len(body)/2); took > most {
		t.Errorf("reading %d MB allocated %d bytes in all; want at most %d", len(body)>>20, took, most)
	}
}

type discard struct{}

func (discard) Append(p []byte) (ecosystem.Extent, error) {
	return ecosystem.Extent{Length: int64(len(p))}, nil
}

func BenchmarkParseIndex(b *testing.B) {
	body := manyReleases(2500, 8<<10)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		page := ecosystem.Page{URL: "https://index.example/foo", ContentType: typeFull, Body: strings.NewReader(body)}
		if _, err := npm.New().ParseIndex("foo", page, discard{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	ix, rows := parsed(b, manyReleases(2500, 8<<10))
	verdicts := slices.Repeat([]ecosystem.Verdict{{Allowed: true}}, len(ix.Files))
	b.ReportAllocs()
	for b.Loop() {
		if err := npm.New().Render(io.Discard, ix, rows, ecosystem.View{Form: "full", Verdicts: verdicts}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestParts: a release's page says which pre-releases of its own number and name it
// requires exactly, whatever it calls them.
func TestParts(t *testing.T) {
	ix, _ := parsed(t, document(
		manifest("1.0.0-linux", ``), manifest("1.0.0", `,"optionalDependencies":{"foo-linux":"npm:foo@1.0.0-linux","foo-win":"npm:foo@1.0.0-win","foo-range":"npm:foo@^1.0.0-range"},"dependencies":{"b":"npm:foo@1.0.0-linux","c":"npm:bar@1.0.0-other","d":"npm:foo@1.0.1-next"}`),
		manifest("1.0.0-rc", `,"dependencies":{"a":"npm:foo@1.0.0-linux","self":"npm:foo@1.0.0-rc","whole":"npm:foo@1.0.0"}`),
		manifest("1.0.0-win", ``), manifest("1.0.0-range", ``), manifest("1.0.0-other", ``), manifest("1.0.1-next", ``),
	))
	got := map[string]string{}
	for _, f := range ix.Files {
		if len(f.PartOf) > 0 {
			got[f.Version] = strings.Join(f.PartOf, " ")
		}
	}
	if diff := cmp.Diff(map[string]string{"1.0.0-linux": "1.0.0 1.0.0-rc", "1.0.0-win": "1.0.0"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
