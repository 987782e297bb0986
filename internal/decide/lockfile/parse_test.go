package lockfile_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// sum is a made-up digest of n bytes.
func sum(seed byte, n int) []byte { return slices.Repeat([]byte{seed}, n) }

func hex256(seed byte) string { return hex.EncodeToString(sum(seed, 32)) }

func sri512(seed byte) string { return "sha512-" + base64.StdEncoding.EncodeToString(sum(seed, 64)) }

func hex512(seed byte) string { return "sha512:" + hex.EncodeToString(sum(seed, 64)) }

func sri1(seed byte) string { return "sha1-" + base64.StdEncoding.EncodeToString(sum(seed, 20)) }

func h1(seed byte) string { return "h1:" + base64.StdEncoding.EncodeToString(sum(seed, 32)) }

// fill puts made-up digests into a sample: {a256} is 32 bytes of 'a' in
// hexadecimal, {a512} and {a1} are integrity hashes, {ah1} is one of go.sum.
func fill(sample string) string {
	for _, seed := range []byte("abcdef") {
		s := string(seed)
		sample = strings.NewReplacer("{"+s+"256}", hex256(seed), "{"+s+"512}", sri512(seed), "{"+s+"1}", sri1(seed), "{"+s+"h1}", h1(seed)).Replace(sample)
	}
	return sample
}

type pins = map[string][]policy.Pin

func pin(version string, line int, digests ...string) policy.Pin {
	return policy.Pin{Version: version, Line: line, Digests: digests}
}

// TestPoliciesNameWhatIsRead: a policy takes exactly the names that are read, so
// that none loads which every run is then refused for.
func TestPoliciesNameWhatIsRead(t *testing.T) {
	for _, name := range append(slices.Collect(maps.Values(named())),
		"dev/constraints.txt", "poetry.lock", "pdm.lock", "Pipfile.lock", "yarn.lock", "bun.lock", "Cargo.lock", "package.json", "x.toml",
	) {
		_, err := lockfile.Parse(name, nil)
		read := err == nil || !strings.Contains(err.Error(), "is not a known lockfile")
		_, err = policy.Parse("p", []byte("packages: { lockfile: { files: ["+name+"] } }\n"))
		if named := err == nil; named != read {
			t.Errorf("%s: read %t, named by policies %t (%v)", name, read, named, err)
		}
	}
}

const requirementsTxt = `# made by hand
--require-hashes
--only-binary=:all:
Foo_Bar[x,y]==1.0 ; python_version < "3.9" \
    --hash=sha256:{a256} \
    --hash=sha256:{b256}
    # via something
foo.bar==2.0 --hash sha256:{c256}  # a newer one

baz == 1!2.0+local \
    --hash=sha384:` + "616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161616161" + `
`

const uvLock = `version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "project"
version = "0.1.0"
source = { virtual = "." }
dependencies = [{ name = "foo-bar" }]

[[package]]
name = "foo-bar"
version = "1.0"
source = { registry = "https://index.example/simple" }
sdist = { url = "https://files.example/p/foo_bar-1.0.tar.gz", hash = "sha256:{a256}", size = 1, upload-time = "2026-01-02T03:04:05Z" }
wheels = [
    { url = "https://files.example/p/foo_bar-1.0-cp311-cp311-linux_x86_64.whl", hash = "sha256:{b256}", size = 2 },
    { url = "https://files.example/p/foo_bar-1.0-py3-none-any.whl", hash = "sha256:{c256}" },
]

[[package]]
name = "foo-bar"
version = "2.0+cpu"
source = { registry = "https://index.example/simple" }
wheels = [{ url = "https://files.example/p/foo_bar-2.0%2Bcpu-py3-none-any.whl", hash = "sha256:{d256}" }]
`

const pylockToml = `lock-version = "1.0"
created-by = "by hand"

[[packages]]
name = "foo"
version = "1.0"

[packages.sdist]
url = "https://files.example/foo-1.0.zip"
[packages.sdist.hashes]
md5 = "61616161616161616161616161616161"
sha256 = "{a256}"

[[packages.wheels]]
name = "foo-1.0-py3-none-any.whl"
url = "https://files.example/foo-1.0-py3-none-any.whl"
hashes = {sha256 = "{b256}"}

[[packages]]
name = "project"
directory = { path = ".", editable = true }
`

const packageLock = `{
  "name": "project", "lockfileVersion": 3,
  "packages": {
    "": {"name": "project", "version": "1.0.0"},
    "node_modules/a": {
      "version": "1.0.0", "bundleDependencies": ["inside"],
      "resolved": "https://index.example/a/-/a-1.0.0.tgz",
      "integrity": "{a512}"
    },
    "node_modules/a/node_modules/@s/b": {"version": "2.0.0-rc.1",
      "resolved": "https://index.example/npm/@s/b/-/b-2.0.0-rc.1.tgz", "integrity": "{b1} {b512}"},
    "node_modules/alias": {"name": "@s/b", "version": "1.0.0", "integrity": "{c512}"},
    "node_modules/local": {"resolved": "packages/local", "link": true},
    "packages/local": {"version": "0.0.1"},
    "node_modules/a/node_modules/inside": {"version": "9.0.0", "inBundle": true}
  }
}
`

const pnpmLock = `lockfileVersion: '9.0'

settings:
  autoInstallPeers: true

packages:

  '@s/b@2.0.0':
    resolution: {integrity: {a512}}
    engines: {node: '>=18'}

  a@1.0.0:
    resolution:
      integrity: {b512}
      tarball: https://index.example/a/-/a-1.0.0.tgz

  local@file:packages/local:
    resolution: {directory: packages/local, type: directory}

snapshots:

  a@1.0.0: {}
`

const pnpmLock6 = `lockfileVersion: '6.0'
packages:
  /@s/b@2.0.0(a@1.0.0)(c@1.0.0):
    resolution: {integrity: {a512}}
    dev: true
`

const goSum = `example.com/a v1.0.0 {ah1}
example.com/a v1.0.0/go.mod {bh1}
example.com/A v1.1.0-rc.1/go.mod {ch1}

example.com/a/v2 v2.0.0 {dh1}
`

func TestParse(t *testing.T) {
	hash := func(seed byte) string { return "sha256:" + hex256(seed) }
	node := func(name string, want pins) lockCase { return lockCase{name, "", pkgref.Node, want} }
	for sample, c := range map[string]lockCase{
		requirementsTxt: {"requirements-dev.txt", "", pkgref.Python, pins{
			"foo-bar": {pin("1.0", 4, hash('a'), hash('b')), pin("2.0", 8, hash('c'))},
			"baz":     {pin("1!2.0+local", 10, "sha384:"+hex.EncodeToString(sum('a', 48)))},
		}},
		uvLock: {"uv.lock", "", pkgref.Python, pins{
			"foo-bar": {pin("1.0", 11, hash('a'), hash('b'), hash('c')), pin("2.0+cpu", 21, hash('d'))},
		}},
		pylockToml:  {"pylock.dev.toml", "", pkgref.Python, pins{"foo": {pin("1.0", 4, hash('a'), hash('b'))}}},
		packageLock: node("package-lock.json", pins{"a": {pin("1.0.0", 5, hex512('a'))}, "@s/b": {pin("2.0.0-rc.1", 10, hex512('b')), pin("1.0.0", 12, hex512('c'))}}),
		pnpmLock:    node("pnpm-lock.yaml", pins{"@s/b": {pin("2.0.0", 8, hex512('a'))}, "a": {pin("1.0.0", 12, hex512('b'))}}),
		pnpmLock6:   node("pnpm-lock.yaml", pins{"@s/b": {pin("2.0.0", 3, hex512('a'))}}),
		goSum: {"go.sum", "", pkgref.Go, pins{
			"example.com/a":    {{Version: "v1.0.0", Digests: []string{h1('a')}, Metadata: []string{h1('b')}, Line: 1}},
			"example.com/A":    {{Version: "v1.1.0-rc.1", Metadata: []string{h1('c')}, Line: 3}},
			"example.com/a/v2": {pin("v2.0.0", 5, h1('d'))},
		}},
		"# nothing\n": {"requirements.txt", "", pkgref.Python, pins{}},
	} {
		got, err := lockfile.Parse("some/"+c.name, []byte(fill(sample)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, list := range c.pins {
			for i := range list {
				list[i].Lockfile = "some/" + c.name
			}
		}
		if diff := cmp.Diff(c.pins, got.Pins); diff != "" || got.Ecosystem != c.ecosystem || !strings.HasPrefix(got.Digest, "sha256:") {
			t.Errorf("%s (%s): (-want +got):\n%s", c.name, got.Ecosystem, diff)
		}
	}
}

type lockCase struct {
	name, _   string
	ecosystem pkgref.Ecosystem
	pins      pins
}

// bad is a sample and what the error says, its line included.
type bad struct{ in, want string }

func refuses(t *testing.T, name string, cases map[string]bad) {
	t.Helper()
	for what, c := range cases {
		_, err := lockfile.Parse(name, []byte(fill(c.in)))
		if !errors.Is(err, fault.ErrInvalid) || !strings.HasPrefix(fmt.Sprint(err), name+":"+c.want[:strings.IndexByte(c.want, ' ')]) || !strings.Contains(fmt.Sprint(err), c.want[strings.IndexByte(c.want, ' ')+1:]) {
			t.Errorf("%s: %v; want line %s", what, err, c.want)
		}
	}
}

func TestRequirementsRefused(t *testing.T) {
	refuses(t, "requirements.txt", map[string]bad{
		"no such name":           {"ä==1 --hash=sha256:{a256}", "1: no name of a package"},
		"a dangling option":      {"a==1 --hash", "1: only --hash is"},
		"another option":         {"a==1 --hash=sha256:{a256} --global-option=x", "1: only --hash is"},
		"another file":           {"\n-r other.txt", "2: not read in a lockfile"},
		"constraints":            {"-c other.txt", "1: not read in a lockfile"},
		"an index":               {"--index-url=https://index.example/simple", "1: --index-url is not read"},
		"a second index":         {"--extra-index-url https://index.example/simple", "1: not read in a lockfile"},
		"a host that is trusted": {"--trusted-host index.example\na==1 --hash=sha256:{a256}", "1: --trusted-host is not read"},
		"one behind a sign":      {"a==1 --hash=sha256:{a256}\n--trusted-host=index.example", "2: --trusted-host is not read"},
		"one behind another":     {"--pre --trusted-host index.example", "1: --trusted-host is not read"},
		"links":                  {"-f https://files.example/", "1: not read in a lockfile"},
		"a URL":                  {"https://files.example/a-1-py3-none-any.whl --hash=sha256:{a256}", "1: no name of a package"},
		"an editable URL":        {"-e git+https://code.example/a", "1: not read in a lockfile"},
		"a mark in it":           {"a==1 --hash=sha256:{a256}\n\ufeffb==1", "2: byte order mark"},
		"a variable":             {"a==${VERSION} --hash=sha256:{a256}", "1: variables"},
		"a continued comment":    {"a==1 --hash=sha256:{a256} # x \\\nb==1 --hash=sha256:{b256}", "1: ends with a backslash"},
		"a long line":            {"a==1 --hash=sha256:{a256}\n#" + strings.Repeat("x", 64<<10), "2: the line has more"},
		"a long requirement":     {"a==1" + strings.Repeat(" \\\n --hash=sha256:{a256}", 10_001), "10001: more than 10000 parts"},
		"no text":                {"a==1\nb\xff", "2: not UTF-8"},
		"a control character":    {"a==1 --hash=sha256:{a256}\n\x1b[2K", "2: control character"},
	})
}

func TestUVRefused(t *testing.T) {
	head := "version = 1\n[[package]]\nname = \"a\"\nversion = \"1.0\"\n"
	registry := head + "source = { registry = \"https://index.example/simple\" }\n"
	refuses(t, "uv.lock", map[string]bad{
		"another version":   {"version = 2\n", `1: version "2"`},
		"no version":        {"", "1: version"},
		"no TOML":           {"version = 1\n]", "2: not TOML"},
		"cut":               {"version = 1\n[[package]]\nname = \"a", "3: not TOML"},
		"a key twice":       {"version = 1\nversion = 1\n", "2: \"version\" is there twice"},
		"a table twice":     {"version = 1\n[a]\nb = 1\n[a]\n", "4: \"a\" is there twice"},
		"a list of one":     {"version = 1\n[a]\n[[a]]\n", "3: twice"},
		"one of a list":     {"version = 1\n[[a]]\n[a]\n", "3: twice"},
		"a plain list":      {"package = []\n[[package]]\n", "2: twice"},
		"a table inline":    {"a = {}\n[a]\n", "2: twice"},
		"below an inline":   {"a = {}\n[a.b]\n", "2: twice"},
		"dots into inline":  {"a = {}\na.b = 1\n", "2: twice"},
		"dots into a table": {"[a.b]\nc = 1\n[a]\nb.d = 1\n", "4: twice"},
		"a table of dots":   {"a.b = 1\n[a]\n", "2: twice"},
		"inside a value":    {"a = 1\n[a.b]\n", "2: twice"},
		"twice inline":      {"a = {b = 1, b = 2}\n", "1: twice"},
		"a deep key":        {strings.Repeat("a.", 200) + "a = 1\n", "1: deep"},
		"a deep table":      {"\n[" + strings.Repeat("a.", 200) + "a]\n", "2: deep"},
		"deep lists":        {"a = " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "1: deep"},
		"a long line":       {"version = 1\n#" + strings.Repeat("x", 1<<20), "2: the line has more"},
		"no list":           {"version = 1\npackage = 1\n", "2: must be a list"},
		"no table":          {"version = 1\npackage = [1]\n", "2: must be a mapping"},
		"no source":         {head, "2: has no source"},
		"another's file":    {registry + "wheels = [\n  # the second is not a's\n  { url = \"https://files.example/a-1.0-py3-none-any.whl\", hash = \"sha256:{a256}\" },\n  { url = \"https://files.example/b-1.0-py3-none-any.whl\", hash = \"sha256:{b256}\" },\n]", "9: not a file of a 1.0"},
		"another release's": {registry + "sdist = { url = \"https://files.example/a-1.1.tar.gz\", hash = \"sha256:{a256}\" }", "6: not a file of a 1.0"},
		"no file's name":    {registry + "sdist = { hash = \"sha256:{a256}\" }", "6: neither a URL nor a name"},
		"a name of none":    {strings.Replace(registry, `"a"`, `1`, 1), "3: name must be a string"},
	})
}

func TestPylockRefused(t *testing.T) {
	head := "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\n"
	refuses(t, "pylock.toml", map[string]bad{
		"another version": {"lock-version = \"2.0\"\n", `1: lock-version "2.0"`},
		"another's file":  {head + "version = \"1\"\nsdist = { name = \"a-1.zip\", url = \"https://files.example/b-1.zip\", hashes = { sha256 = \"{a256}\" } }", "5: not a file of a 1"},
	})
}

func TestPackageLockRefused(t *testing.T) {
	entry := func(fields string) string {
		return "{\"lockfileVersion\": 3, \"packages\": {\n\"node_modules/a\": {" + fields + "}}}"
	}
	refuses(t, "package-lock.json", map[string]bad{
		"no JSON":             {"{\n\"lockfileVersion\": 3,\n]", "2: not JSON"},
		"cut":                 {"{\n\"lockfileVersion\": 3,\n", "3: not JSON"},
		"two documents":       {entry("\"version\": \"1.0.0\", \"integrity\": \"{a512}\"") + "\n{}", "3: follows the end"},
		"a key twice":         {"{\n\"lockfileVersion\": 3,\n\"lockfileVersion\": 2}", "3: twice"},
		"version 1":           {"{\"lockfileVersion\": 1, \"dependencies\": {}}", `1: lockfileVersion "1"`},
		"no packages":         {"{\"lockfileVersion\": 2, \"dependencies\": {}}", "1: no packages"},
		"a list":              {"[]", "1: must be a mapping"},
		"another's tarball":   {entry("\"version\": \"1.0.0\",\n\n\"resolved\": \"https://index.example/b/-/b-1.0.0.tgz\", \"integrity\": \"{a512}\""), "4: not the tarball of a 1.0.0"},
		"a scoped one's":      {entry("\"version\": \"1.0.0\", \"resolved\": \"https://index.example/@evil/a/-/a-1.0.0.tgz\", \"integrity\": \"{a512}\""), "2: not the tarball"},
		"another version's":   {entry("\"version\": \"1.0.0\", \"resolved\": \"https://index.example/a/-/a-1.0.1.tgz\", \"integrity\": \"{a512}\""), "2: not the tarball"},
		"an alias of another": {entry("\"name\": \"c\", \"version\": \"1.0.0\", \"resolved\": \"https://index.example/a/-/a-1.0.0.tgz\", \"integrity\": \"{a512}\""), "2: not the tarball of c"},
		"many values":         {"[\n" + strings.Repeat("0,\n", 1_000_001), "400001: more than 400000 values"},
		"too deep":            {"{\n\"a\": " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}", "2: deep"},
	})
}

func TestPnpmRefused(t *testing.T) {
	entry := func(lines string) string { return "lockfileVersion: '9.0'\npackages:\n  a@1.0.0:\n" + lines }
	refuses(t, "pnpm-lock.yaml", map[string]bad{
		"no YAML":           {"a: [\n", "2: not YAML"},
		"empty":             {"", "1: empty"},
		"version 5":         {"lockfileVersion: 5.4\n", `1: lockfileVersion "5.4"`},
		"two documents":     {"lockfileVersion: '9.0'\nimporters: { .: { dependencies: {} } }\n---\nlockfileVersion: '9.0'\n", "4: more than one"},
		"three documents":   {"a: 1\n---\na: 1\n---\na: 1\n", "4: more than 2"},
		"a key twice":       {"lockfileVersion: '9.0'\nlockfileVersion: '9.0'\n", "2: twice"},
		"a large file":      {strings.Repeat("#\n", 4<<20), "1: in YAML may have"},
		"a long line":       {"lockfileVersion: '9.0'\n#" + strings.Repeat("x", 64<<10), "2: the line has more"},
		"an anchor":         {"lockfileVersion: '9.0'\nx: &a 1\n", "2: anchors"},
		"an alias":          {"lockfileVersion: '9.0'\nx: [&a 1]\ny: *a\n", "2: anchors"},
		"a tag":             {"lockfileVersion: '9.0'\nx: !!str 1\n", "2: tags"},
		"no resolution":     {entry("    engines: {}\n"), "3: no resolution"},
		"another's tarball": {entry("    resolution:\n      integrity: {a512}\n      tarball: https://index.example/b/-/b-1.0.0.tgz\n"), "6: not the tarball of a 1.0.0"},
		"a key of none":     {"lockfileVersion: '9.0'\npackages:\n  nothing:\n    resolution: {integrity: {a512}}\n", "3: not name@version"},
	})
}

func TestGoSumRefused(t *testing.T) {
	refuses(t, "go.sum", map[string]bad{
		"two fields": {"example.com/a v1.0.0\n", "1: module, version and hash"},
	})
}

func TestUnknownFormats(t *testing.T) {
	for _, name := range []string{"yarn.lock", "Cargo.lock", "uv.lock/x", "", "package.json"} {
		if _, err := lockfile.Parse(name, nil); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "is not a known lockfile") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := lockfile.Parse("go.sum", make([]byte, lockfile.MaxBytes+1)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a large file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	names := []string{"requirements.txt", "uv.lock", "pylock.toml", "package-lock.json", "pnpm-lock.yaml", "go.sum"}
	for i, sample := range []string{requirementsTxt, uvLock, pylockToml, packageLock, pnpmLock, goSum} {
		f.Add(uint8(i), []byte(fill(sample)))
	}
	f.Add(uint8(4), []byte(fill(pnpmLock6)))
	f.Fuzz(func(t *testing.T, format uint8, data []byte) {
		name := names[int(format)%len(names)]
		got, err := lockfile.Parse(name, data)
		if err != nil {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Fatalf("not the input's fault: %v", err)
			}
			return
		}
		lines := strings.Count(string(data), "\n") + 1
		for project, list := range got.Pins {
			for _, p := range list {
				ref, err := pkgref.New(got.Ecosystem, project, p.Version)
				switch {
				case err != nil || ref.Name != project || ref.Version != p.Version:
					t.Errorf("%s %s is not canonical", project, p.Version)
				case p.Line < 1 || p.Line > lines:
					t.Errorf("%s is in line %d of %d", project, p.Line, lines)
				case len(p.Digests)+len(p.Metadata) == 0:
					t.Errorf("%s has no digest", project)
				}
			}
		}
	})
}
