package lockfile_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile/lockfiletest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// formats are an example of each format, by the name that pkgref has for it.
func formats() map[string]lockfiletest.Format {
	sha256 := func(sample string) lockfiletest.Format {
		return lockfiletest.Format{
			Sample: sample, Package: "foo-bar", Version: "1.0",
			Hashes: "sha256:" + hex256('a'), Pinned: "sha256:" + hex256('a'),
			OtherHashes: "sha256:" + hex256('b'), OtherPinned: "sha256:" + hex256('b'),
			Weak: "md5:" + hex256('a')[:32],
		}
	}
	requirements := sha256("Foo_Bar=={version} {hashes}\n")
	requirements.Hashes = "--hash=" + requirements.Hashes
	requirements.OtherHashes = "--hash=" + requirements.OtherHashes
	requirements.Weak = "--hash=" + requirements.Weak

	uv := sha256("version = 1\n[[package]]\nname = \"foo-bar\"\nversion = \"{version}\"\nsource = { registry = \"https://index.example/simple\" }\nsdist = { url = \"https://files.example/p/foo_bar-1.0.tar.gz\", hash = \"{hashes}\" }\n")

	pylock := sha256("lock-version = \"1.0\"\n[[packages]]\nname = \"foo-bar\"\nversion = \"{version}\"\n[packages.sdist]\nurl = \"https://files.example/foo_bar-1.0.tar.gz\"\n[packages.sdist.hashes]\n{hashes}\n")
	pylock.Hashes, pylock.OtherHashes = `sha256 = "`+hex256('a')+`"`, `sha256 = "`+hex256('b')+`"`
	pylock.Weak = `md5 = "` + hex256('a')[:32] + `"`

	node := func(sample string) lockfiletest.Format {
		return lockfiletest.Format{
			Sample: sample, Package: "a", Version: "1.0.0",
			Hashes: sri512('a'), Pinned: hex512('a'), OtherHashes: sri512('b'), OtherPinned: hex512('b'), Weak: sri1('a'),
		}
	}
	npm := node(`{"name": "project", "lockfileVersion": 3, "packages": {"": {"name": "project"},
"node_modules/a": {"version": "{version}", "resolved": "https://index.example/a/-/a-1.0.0.tgz", "integrity": "{hashes}"}}}
`)
	pnpm := node("lockfileVersion: '9.0'\npackages:\n\n  a@{version}:\n    resolution: {integrity: {hashes}}\n")
	golang := lockfiletest.Format{
		Sample: "example.com/a {version} {hashes}\n", Package: "example.com/a", Version: "v1.0.0",
		Hashes: h1('a'), Pinned: h1('a'), OtherHashes: h1('b'), OtherPinned: h1('b'),
	}
	return map[string]lockfiletest.Format{
		"*.txt":   requirements,
		"uv.lock": uv, "pylock.toml": pylock, "pylock.*.toml": pylock,
		"package-lock.json": npm, "npm-shrinkwrap.json": npm, "pnpm-lock.yaml": pnpm,
		"go.sum": golang, "go.work.sum": golang,
	}
}

// named are the files that pkgref knows as lockfiles, by the names that it has for them.
func named() map[string]string {
	names := map[string]string{}
	for _, e := range pkgref.Ecosystems() {
		for _, l := range e.Lockfiles() {
			names[l.Name] = strings.ReplaceAll(l.Name, "*", "x")
		}
	}
	return names
}

// TestFormats: what an ecosystem calls a lockfile is read here, strictly, as one of that
// ecosystem.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, e := range pkgref.Ecosystems() {
		for _, l := range e.Lockfiles() {
			f, ok := formats()[l.Name]
			if !ok {
				t.Errorf("%s of %s has no example here", l.Name, e)
				continue
			}
			lockfiletest.Conforms(t, lockfile.Parse, named()[l.Name], e, f)
		}
	}
}

// TestTheSuiteFindsWhatIsWrong: readers that would let files in, or none, don't pass.
func TestTheSuiteFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	edit := func(change func(*lockfile.Lockfile)) lockfiletest.Read {
		return func(name string, data []byte) (*lockfile.Lockfile, error) {
			l, err := lockfile.Parse(name, data)
			if err == nil {
				change(l)
			}
			return l, err
		}
	}
	for what, read := range map[string]lockfiletest.Read{
		"pins nothing": edit(func(l *lockfile.Lockfile) { clear(l.Pins) }),
		"pins without a digest": edit(func(l *lockfile.Lockfile) {
			for _, pins := range l.Pins {
				pins[0].Digests = nil
			}
		}),
		"always pins the same": func(name string, _ []byte) (*lockfile.Lockfile, error) {
			return lockfile.Parse(name, []byte("example.com/a v1.0.0 "+h1('a')+"\n"))
		},
		"leaves out what it can't read": func(name string, data []byte) (*lockfile.Lockfile, error) {
			if l, err := lockfile.Parse(name, data); err == nil {
				return l, nil
			}
			return &lockfile.Lockfile{Name: name, Ecosystem: pkgref.Go, Pins: map[string][]policy.Pin{}}, nil
		},
	} {
		if faults := lockfiletest.Faults(read, "go.sum", pkgref.Go, formats()["go.sum"]); len(faults) == 0 {
			t.Errorf("a reader that %s passes", what)
		}
	}
}
