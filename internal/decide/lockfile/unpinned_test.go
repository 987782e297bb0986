package lockfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// entryOf is a whole lockfile with a release "good" that is pinned, and beside it one entry.
func entryOf(name, entry string) (file, text string) {
	switch name {
	case "uv.lock":
		return name, "version = 1\n[[package]]\nname = \"good\"\nversion = \"1.0\"\nsource = { registry = \"https://index.example/simple\" }\nsdist = { url = \"https://files.example/good-1.0.zip\", hash = \"sha256:{a256}\" }\n[[package]]\nname = \"a\"\nversion = \"1.0\"\n" + entry
	case "pylock.toml":
		return name, "lock-version = \"1.0\"\n[[packages]]\nname = \"good\"\nversion = \"1.0\"\nsdist = { name = \"good-1.0.zip\", hashes = { sha256 = \"{a256}\" } }\n[[packages]]\nname = \"a\"\n" + entry
	case "package-lock.json":
		return name, "{\"lockfileVersion\": 3, \"packages\": {\"\": {\"dependencies\": {\"good\": \"^1\", \"b\": \"https://files.example/b.tgz\"}},\n\"node_modules/good\": {\"version\": \"1.0.0\", \"integrity\": \"{a512}\"},\n" + entry + "}}"
	case "pnpm-lock.yaml":
		return name, "lockfileVersion: '9.0'\npackages:\n  good@1.0.0:\n    resolution: {integrity: {a512}}\n" + entry
	}
	return name, "good==1.0 --hash=sha256:{a256}\n" + entry
}

// TestEntriesThatPinNothing: one such entry refuses its own name and leaves the pins of all others; an entry of no registry says nothing.
func TestEntriesThatPinNothing(t *testing.T) {
	const registry = "source = { registry = \"https://index.example/simple\" }\n"
	for file, cases := range map[string]map[string]struct {
		entry   string
		name    string // that is refused; "": none
		version string
		line    int
		reason  string
	}{
		"requirements.txt": {
			"no hash":            {"b==1\n", "b", "1", 2, "has no hash"},
			"no version":         {"a --hash=sha256:{a256}", "a", "", 2, "not pinned"},
			"extras":             {"a[x] --hash=sha256:{a256}", "a", "", 2, "not pinned"},
			"a range":            {"a>=1 --hash=sha256:{a256}", "a", "", 2, "not pinned"},
			"two specifiers":     {"a==1,<2 --hash=sha256:{a256}", "a", "", 2, "not pinned"},
			"a wildcard":         {"a==1.* --hash=sha256:{a256}", "a", "", 2, "not pinned"},
			"md5":                {"a==1 --hash=md5:61616161616161616161616161616161", "a", "1", 2, "weak hash"},
			"sha1 beside":        {"a==1 \\\n  --hash=sha256:{a256} \\\n  --hash=sha1:6161", "a", "1", 2, "weak hash"},
			"a URL":              {"A_b @ https://files.example/a-1.zip --hash=sha256:{a256}", "a-b", "", 2, "a URL"},
			"a repository":       {"a @ git+ssh://git@code.example/a", "a", "", 2, "a URL or a repository"},
			"a repository, old":  {"a@git+ssh://git@code.example/a", "a", "", 2, "a URL or a repository"},
			"itself":             {"-e .", "", "", 2, "project's own"},
			"itself with extras": {"--editable=.[dev]", "", "", 2, "project's own"},
			"a member":           {"-e file:///workspace/member", "", "", 2, "project's own"},
			"a path":             {"./a-1-py3-none-any.whl", "", "", 2, "project's own"},
			"a short hash":       {"a==1 --hash=sha256:6161", "a", "1", 2, "can't be read"},
			"no hash behind it":  {"a==1 --hash=sha256", "a", "1", 2, "can't be read"},
			"an unknown hash":    {"a==1 --hash=sha256:{a256} --hash=crc32:61616161", "a", "1", 2, "can't be read"},
			"no such version":    {"a==one --hash=sha256:{a256}", "a", "", 2, "no version that a registry could have"},
		},
		"uv.lock": {
			"a repository":   {"source = { git = \"https://code.example/a?rev=1\" }\n", "a", "1.0", 7, "from a repository"},
			"a URL":          {"source = { url = \"https://files.example/a.whl\" }\n", "a", "1.0", 7, "from a URL"},
			"a file":         {"source = { path = \"a.whl\" }\n", "a", "1.0", 7, "from a file"},
			"another source": {"source = { dream = \"a\" }\n", "a", "1.0", 7, "not known here"},
			"no files":       {registry, "a", "1.0", 7, "has no hash"},
			"no hash":        {registry + "wheels = [\n{ url = \"https://files.example/a-1.0-py3-none-any.whl\" },\n]", "a", "1.0", 7, "a file that has no hash"},
			"a weak hash":    {registry + "sdist = { url = \"https://files.example/a-1.0.zip\", hash = \"md5:6161\" }", "a", "1.0", 7, "weak hash"},
			"a broken hash":  {registry + "sdist = { url = \"https://files.example/a-1.0.zip\", hash = \"sha256:xyz\" }", "a", "1.0", 7, "can't be read"},
			"a weak second":  {registry + "sdist = { url = \"https://files.example/a-1.0.zip\", hash = \"sha256:{a256}\" }\nwheels = [{ url = \"https://files.example/a-1.0-py3-none-any.whl\", hash = \"md5:6161\" }]", "a", "1.0", 7, "weak hash"},
		},
		"pylock.toml": {
			"a repository": {"[packages.vcs]\ntype = \"git\"\n", "a", "", 6, "from a repository"},
			"an archive":   {"version = \"1\"\narchive = { url = \"https://files.example/a.zip\" }\n", "a", "1", 6, "a URL of its own"},
			"no hash":      {"version = \"1\"\nsdist = { name = \"a-1.zip\" }", "a", "1", 6, "has no hash"},
			"empty hashes": {"version = \"1\"\nsdist = { name = \"a-1.zip\", hashes = {} }", "a", "1", 6, "has no hash"},
			"only md5":     {"version = \"1\"\nsdist = { name = \"a-1.zip\", hashes = { md5 = \"6161\" } }", "a", "1", 6, "weak hash"},
			"no files":     {"version = \"1\"", "a", "1", 6, "has no hash"},
			"a short hash": {"version = \"1\"\nsdist = { name = \"a-1.zip\", hashes = { sha256 = \"{a256}\", sha512 = \"6161\" } }", "a", "1", 6, "can't be read"},
			"no version":   {"wheels = []", "a", "", 6, "no version that a registry could have"},
		},
		"package-lock.json": {
			"no hash":          {"\"node_modules/a\": {\"version\": \"1.0.0\"}", "a", "1.0.0", 3, "has no hash"},
			"sha1":             {"\"node_modules/a\": {\"version\": \"1.0.0\", \"integrity\": \"{a1}\"}", "a", "1.0.0", 3, "weak hash"},
			"a repository":     {"\"node_modules/a\": {\"version\": \"1.0.0\", \"resolved\": \"git+ssh://git@code.example/a.git#abc\"}", "a", "1.0.0", 3, "from a repository"},
			"a file":           {"\"node_modules/a\": {\"version\": \"file:a.tgz\", \"resolved\": \"file:a.tgz\", \"integrity\": \"{a512}\"}", "a", "", 3, "a file"},
			"a URL":            {"\"node_modules/b\": {\"version\": \"1.0.0\", \"resolved\": \"https://files.example/b.tgz\", \"integrity\": \"{a512}\"}", "b", "1.0.0", 3, "a URL of its own"},
			"an alias":         {"\"node_modules/b\": {\"name\": \"@s/c\", \"version\": \"1.0.0\", \"resolved\": \"https://files.example/b.tgz\", \"integrity\": \"{a512}\"}", "@s/c", "1.0.0", 3, "a URL of its own"}, // and b: see below
			"bundled by none":  {"\"node_modules/x/node_modules/a\": {\"version\": \"1.0.0\", \"inBundle\": true}", "a", "1.0.0", 3, "has no hash"},
			"another system":   {"\"node_modules/@esbuild/aix-ppc64\": {\"dev\": true, \"optional\": true}", "", "", 3, "another system"},
			"a broken hash":    {"\"node_modules/a\": {\"version\": \"1.0.0\", \"integrity\": \"sha512-YQ==\"}", "a", "1.0.0", 3, "can't be read"},
			"no version":       {"\"node_modules/a\": {\"integrity\": \"{a512}\"}", "a", "", 3, "no version that a registry could have"},
			"another version":  {"\"node_modules/a\": {\"version\": \"latest\", \"integrity\": \"{a512}\"}", "a", "", 3, "no version that a registry could have"},
			"a name of none":   {"\"node_modules/../a\": {\"version\": \"1.0.0\", \"integrity\": \"{a512}\"}", "", "", 3, "no name that a registry has"},
			"none, elsewhere":  {"\"node_modules/../a\": {\"version\": \"1.0.0\", \"resolved\": \"git+ssh://git@x.example/a.git\"}", "", "", 3, "no name that a registry has"},
			"an alias of none": {"\"node_modules/a\": {\"name\": \"../b\", \"version\": \"1.0.0\", \"integrity\": \"{a512}\"}", "a", "", 3, "stands for a package"},
		},
		"pnpm-lock.yaml": {
			"no hash":          {"  a@1.0.0:\n    resolution: {}\n", "a", "1.0.0", 5, "has no hash"},
			"no hash, a URL":   {"  a@1.0.0:\n    resolution: {tarball: https://files.example/a.tgz}\n", "a", "1.0.0", 5, "has no hash"},
			"a weak hash":      {"  '@s/a@1.0.0':\n    resolution: {integrity: {a1}}\n", "@s/a", "1.0.0", 5, "weak hash"},
			"a URL":            {"  a@https://user@files.example/a.tgz:\n    resolution: {integrity: {a512}, tarball: https://files.example/a.tgz}\n", "a", "", 5, "a URL of its own"},
			"a file":           {"  a@file:a.tgz:\n    resolution: {integrity: {a512}, tarball: file:a.tgz}\n", "a", "", 5, "a file"},
			"a repository":     {"  '@s/a@git+ssh://git@code.example/a.git#abc':\n    resolution: {type: git, repo: ssh://git@code.example/a.git, commit: abc}\n", "@s/a", "", 5, "from a repository"},
			"one of version 6": {"  code.example/x/a/abc:\n    resolution: {tarball: https://code.example/x/a/tar.gz/abc}\n    name: a\n", "a", "", 5, "a URL of its own"},
			"a runtime":        {"  node@runtime:24.19.0:\n    resolution: {type: variations, variants: [{resolution: {type: binary}}]}\n", "", "", 5, "is a runtime"},
			"a broken hash":    {"  a@1.0.0:\n    resolution: {integrity: sha512-YQ==}\n", "a", "1.0.0", 5, "can't be read"},
			"another version":  {"  a@latest:\n    resolution: {integrity: {a512}}\n", "a", "", 5, "no version that a registry could have"},
		},
	} {
		for what, c := range cases {
			name, text := entryOf(file, fill(c.entry))
			lock, err := lockfile.Parse(name, []byte(fill(text)))
			if err != nil {
				t.Errorf("%s, %s: %v", name, what, err)
				continue
			}
			remarks := strings.Join(lock.Remarks(), "; ")
			if len(lock.Pins) != 1 || len(lock.Pins["good"]) != 1 || !strings.Contains(remarks, fmt.Sprintf("line %d ", c.line)) || !strings.Contains(remarks, c.reason) {
				t.Errorf("%s, %s: %v is pinned, and said: %s; want line %d and %q", name, what, lock.Pins, remarks, c.line, c.reason)
			}
			set, err := lockfile.NewSet(policy.LockRules{Mode: policy.LockPrefer}, []*lockfile.Lockfile{lock})
			if err != nil {
				t.Fatal(err)
			}
			for _, asked := range []string{"good", "a", "b", "unnamed"} {
				ref := pkgref.Ref{Ecosystem: lock.Ecosystem, Name: asked}
				if refused := len(set.For(ref).Unpinned) > 0; refused != (asked == c.name || asked == "b" && what == "an alias") {
					t.Errorf("%s, %s: %s is refused: %t", name, what, asked, refused)
				}
			}
			if c.name == "" {
				if len(lock.Unpinned) > 0 || len(lock.Skipped) != 1 {
					t.Errorf("%s, %s: %v is refused, %v skipped", name, what, lock.Unpinned, lock.Skipped)
				}
				continue
			}
			noted := lock.Unpinned[c.name]
			if len(noted) != 1 || noted[0].Version != c.version || noted[0].Line != c.line || noted[0].Lockfile != name {
				t.Errorf("%s, %s: %+v is noted; want %s %q in line %d", name, what, lock.Unpinned, c.name, c.version, c.line)
			}
			if _, unpinned, err := lockfile.ParseResolved(name, []byte(fill(text))); err == nil && len(unpinned) != 1 {
				t.Errorf("%s, %s: a resolver's answer has %v", name, what, unpinned)
			}
		}
	}
}

// TestNamesThatAreTakenFromElsewhere: what a registry has under such a name is another package, so it is refused, also where other names are
// left to the policy: a directory of the project's own, without a remark, and both names of what has another name itself.
func TestNamesThatAreTakenFromElsewhere(t *testing.T) {
	for name, cases := range map[string]map[string][]string{
		"uv.lock": {
			"source = { editable = \"a\" }\n": {"a"}, "source = { virtual = \".\" }\n": {"a"}, "source = { directory = \"a\" }\n": {"a"},
		},
		"pylock.toml": {"directory = { path = \"a\" }\n": {"a"}},
		"package-lock.json": {
			"\"lib/a\": {\"version\": \"1.0.0\"},\n\"node_modules/a\": {\"resolved\": \"lib/a\", \"link\": true}":                                     {"a"},
			"\"node_modules/a\": {\"name\": \"@s/c\", \"version\": \"1.0.0\", \"resolved\": \"git+ssh://git@code.example/c.git#abc\"}":                {"a", "@s/c"},
			"\"node_modules/a\": {\"optional\": true, \"resolved\": \"https://files.example/a.tgz\", \"integrity\": \"{a512}\"}":                      {"a"},
			"\"node_modules/b\": {\"name\": \"c\", \"version\": \"1.0.0\", \"resolved\": \"https://files.example/b.tgz\", \"integrity\": \"{a512}\"}": {"b", "c"},
		},
		"pnpm-lock.yaml": {
			"  a@file:../a:\n    resolution: {directory: ../a, type: directory}\n":                                                                                                                        {"a"},
			"importers:\n  .:\n    dependencies:\n      '@s/a': {specifier: 'workspace:*', version: 'link:../a'}\n":                                                                                       {"@s/a"},
			"importers:\n  .:\n    devDependencies:\n      a: {specifier: x/c, version: 'c@https://code.example/x/c/tar.gz/abc(good@1.0.0)'}\n      b: {specifier: 1, version: '@s/b@1.0.0(a@file:x)'}\n": {"a"},
			"dependencies:\n  a: {specifier: x/c, version: code.example/x/c/abc}\n  b: {specifier: 'npm:@s/b@1', version: /@s/b@1.0.0}\n":                                                                 {"a"},
			"importers:\n  .:\n    dependencies:\n      a: {specifier: 'git@code.example:x/c', version: git@code.example+x/c/abc}\n":                                                                      {"a"},
			"dependencies:\n  a: {specifier: 'link:../a', version: 'link:../a'}\n":                                                                                                                        {"a"},
		},
	} {
		for entry, refused := range cases {
			name, text := entryOf(name, fill(entry))
			lock, err := lockfile.Parse(name, []byte(fill(text)))
			if err != nil || len(lock.Pins) != 1 || len(lock.Unpinned) != len(refused) {
				t.Errorf("%s: %v; %+v, want %v refused", entry, err, lock, refused)
				continue
			}
			for _, one := range refused {
				if len(lock.Unpinned[one]) == 0 {
					t.Errorf("%s: %+v is refused, want %s", entry, lock.Unpinned, one)
				} else if own := strings.Contains(lock.Unpinned[one][0].Reason, "project's own"); own != (len(lock.Remarks()) == 0) {
					t.Errorf("%s: %+v is refused, and %q remarked", entry, lock.Unpinned, lock.Remarks())
				}
			}
		}
	}
	for _, line := range []string{"a-1-py3-none-any.whl", "a-1.tar.gz --hash=sha256:{a256}", "sub/a.whl", "a-1-py3-none-any.whl[x]", "a-1.tlz"} {
		if lock, err := lockfile.Parse("requirements.txt", []byte(fill(line))); err == nil {
			t.Errorf("%s: %+v; want no lockfile, since nobody knows the name", line, lock)
		}
	}
}

// TestLinesThatPipReadsOtherwise: all options of a line, and what is behind an end of a line that is Python's alone.
func TestLinesThatPipReadsOtherwise(t *testing.T) {
	const good = "good==1.0 --hash=sha256:{a256}"
	for _, line := range []string{"--require-hashes --no-binary :all:", "-e ./lib --pre", "# x"} {
		if lock, err := lockfile.Parse("requirements.txt", []byte(fill(line+"\r\n"+good+"\r\n"))); err != nil || len(lock.Pins) != 1 {
			t.Errorf("%q: %+v, %v", line, lock, err)
		}
	}
	for _, line := range []string{
		"--pre --extra-index-url https://own.example", "--no-binary :all: -i https://own.example", "-e ./lib -f wheels", "--pre \"--index-url\" https://own.example", `--pre ''--no-index`, `--pre \--no-index`, "--pre ${X}",
		"# x\r--index-url https://own.example", "# x\ra==1.0", "# x\fa==1.0", "# x\va==1.0", "# x\x1ca==1.0", "# x\u0085a==1.0", "# x\u2028a==1.0",
	} {
		if lock, err := lockfile.Parse("requirements.txt", []byte(fill(line+"\n"+good+"\n"))); err == nil {
			t.Errorf("%q is read: %+v", line, lock)
		}
	}
}

// TestADirectoryWithoutAName is told, since nobody can say which name it has.
func TestADirectoryWithoutAName(t *testing.T) {
	name, text := entryOf("pnpm-lock.yaml", "  lib:\n    resolution: {directory: lib, type: directory}\n")
	lock, err := lockfile.Parse(name, []byte(fill(text)))
	if err != nil || len(lock.Pins) != 1 || len(lock.Unpinned) != 0 {
		t.Fatalf("%+v, %v", lock, err)
	}
	if remarks := strings.Join(lock.Remarks(), "; "); !strings.Contains(remarks, "lib (line 5 is a directory without a name") {
		t.Errorf("said: %s", remarks)
	}
}

// TestTheDocumentOfPnpmsTools: its releases are pinned beside the project's.
func TestTheDocumentOfPnpmsTools(t *testing.T) {
	const tools = "lockfileVersion: '9.0'\nimporters:\n  .:\n    configDependencies: {}\n    packageManagerDependencies:\n      pnpm: {specifier: 12.0.0, version: 12.0.0}\npackages:\n  pnpm@12.0.0:\n    resolution: {integrity: {b512}}\n---\n"
	_, project := entryOf("pnpm-lock.yaml", "")
	lock, err := lockfile.Parse("pnpm-lock.yaml", []byte(fill(tools+project)))
	if err != nil {
		t.Fatal(err)
	}
	if len(lock.Pins) != 2 || len(lock.Pins["pnpm"]) != 1 || len(lock.Pins["good"]) != 1 || lock.Pins["good"][0].Line != 13 {
		t.Errorf("%+v is pinned", lock.Pins)
	}
}

// TestATarballWithANameOfItsOwn: a registry's URL is held to no pattern of another one's; its hash is what counts.
func TestATarballWithANameOfItsOwn(t *testing.T) {
	for file, entry := range map[string]string{
		"package-lock.json": "\"node_modules/@s/a\": {\"version\": \"1.0.0\", \"resolved\": \"https://index.example/download/@s/a/1.0.0/abc\", \"integrity\": \"{b512}\"}",
		"pnpm-lock.yaml":    "  '@s/a@1.0.0':\n    resolution: {integrity: {b512}, tarball: https://index.example/download/@s/a/1.0.0/abc}\n",
	} {
		name, text := entryOf(file, entry)
		lock, err := lockfile.Parse(name, []byte(fill(text)))
		if err != nil || len(lock.Pins["@s/a"]) != 1 || !slices.Equal(lock.Pins["@s/a"][0].Digests, []string{hex512('b')}) {
			t.Errorf("%s: %+v, %v", name, lock, err)
		}
	}
}

// TestAContinuedLineIsJoinedByNothing: pip takes what stands on both sides of a line's end for
// one word. Here it wants a version that no release has, so that no other may be pinned.
func TestAContinuedLineIsJoinedByNothing(t *testing.T) {
	t.Parallel()
	for text, pinned := range map[string]bool{
		"a==1.0\\\n--hash=sha256:{a256}":       false,
		"a===1.0\\\n--hash=sha256:{a256}":      false,
		"a==1.0 \\\n--hash=sha256:{a256}":      true,
		"a==1.0\\\n --hash=sha256:{a256}":      true,
		"a==1.0\\\n\t--hash=sha256:{a256}":     true,
		"a==1.0\\\n\\\n--hash=sha256:{a256}":   false,
		"a==1.0 \\\n\\\n--hash=sha256:{a256}":  true,
		"a==1.\\\n0 --hash=sha256:{a256}":      true,
		"a==1.0 \\\n \\\n--hash=sha256:{a256}": true,
	} {
		lock, err := lockfile.Parse("requirements.txt", []byte(fill(text)))
		if err == nil && len(lock.Pins["a"]) == 1 && lock.Pins["a"][0].Version != "1.0" {
			t.Errorf("%q pins %v", text, lock.Pins["a"])
		}
		if got := err == nil && len(lock.Pins["a"]) == 1; got != pinned {
			t.Errorf("%q: a is pinned: %t, want %t (%v)", text, got, pinned, err)
		}
	}
}

// TestTheHashOfAnEmptyGoModIsNone: go passes over it, so that no file is held to it.
func TestTheHashOfAnEmptyGoModIsNone(t *testing.T) {
	t.Parallel()
	const empty = "h1:G7mAYYxgmS0lVkHyy2hEOLQCFB0DlQFTMLWggykrydY="
	lock, err := lockfile.Parse("go.sum", []byte(fill("example.com/a v1.0.0/go.mod "+empty+"\nexample.com/b v1.0.0/go.mod {ah1}\n")))
	if err != nil {
		t.Fatal(err)
	}
	if len(lock.Pins["example.com/a"]) != 0 || len(lock.Pins["example.com/b"]) != 1 || len(lock.Skipped) != 1 || lock.Skipped[0].Line != 1 {
		t.Errorf("pins %v, skipped %v", lock.Pins, lock.Skipped)
	}
}

// TestEntriesOfAGoSumThatPinNothing: one hash that go would not take refuses its module alone, of which other releases stay pinned.
func TestEntriesOfAGoSumThatPinNothing(t *testing.T) {
	t.Parallel()
	for entry, reason := range map[string]string{
		"example.com/a v1.0.0 h2:aaaa":                                             "can't be read",
		"example.com/a v1.0.0 h1:YQ==":                                             "can't be read",
		"example.com/a v1.0.0/go.mod h1:x":                                         "can't be read",
		"example.com/a v1.0.0 {ah1}\nexample.com/a v1.0.0 {bh1}":                   "two different hashes",
		"example.com/a v1.0.0/go.mod {ah1}\nexample.com/a v1.0.0/go.mod {bh1}":     "two different hashes",
		"example.com/a v1.0.0 {ah1}\nexample.com/a v1.0.0/go.mod {bh1} ":           "",
		"example.com/a latest {ah1}":                                               "no version",
		"example.com/a v2.0.0 {ah1}":                                               "no version",
		"example.com/a v1.0.0 {ah1}\nexample.com/a v1.0.0 {ah1}\n*/b v1.0.0 {ah1}": "no name that a registry has",
	} {
		lock, err := lockfile.Parse("go.sum", []byte(fill("example.com/good v1.0.0 {ah1}\nexample.com/a v1.1.0 {ah1}\n"+entry+"\n")))
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		refused, pins := strings.Contains(reason, "hash") || strings.Contains(reason, "read") || strings.Contains(reason, "version"), 2
		if refused {
			pins = 1
		}
		if len(lock.Pins["example.com/good"]) != 1 || len(lock.Pins["example.com/a"]) != pins || len(lock.Unpinned["example.com/a"]) > 0 != refused {
			t.Errorf("%s: pins %v, refuses %v", entry, lock.Pins, lock.Unpinned)
		}
		if remarks := strings.Join(lock.Remarks(), "; "); !strings.Contains(remarks, reason) || (reason != "") != strings.Contains(remarks, "line ") {
			t.Errorf("%s: said %q", entry, remarks)
		}
	}
}
