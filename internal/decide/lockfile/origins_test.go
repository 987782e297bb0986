package lockfile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// TestOriginsAsClientsWriteThem: each name that a lockfile has from elsewhere is listed, however old the format.
func TestOriginsAsClientsWriteThem(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ name, data, want string }{
		"a repository of npm's first":    {"package-lock.json", `{"lockfileVersion":1,"dependencies":{"own":{"version":"git+ssh://git@x.example/own.git#abc","from":"own@git+ssh://git@x.example/own.git"}}}`, "own="},
		"a directory of npm's first":     {"package-lock.json", `{"lockfileVersion":1,"dependencies":{"own":{"version":"file:../own"}}}`, "own="},
		"a URL of npm's first":           {"package-lock.json", `{"lockfileVersion":1,"dependencies":{"own":{"version":"https://x.example/own.tgz"}}}`, "own="},
		"an alias of npm's first":        {"package-lock.json", `{"lockfileVersion":1,"dependencies":{"alias":{"version":"npm:@s/real@1.0.0","resolved":"https://own.example/@s/real/-/real-1.0.0.tgz"}}}`, "alias=https://own.example @s/real=https://own.example"},
		"version 2 for npm 6":            {"package-lock.json", `{"lockfileVersion":2,"packages":{"":{}},"dependencies":{"own":{"version":"1.0.0","resolved":"https://own.example/own/-/own-1.0.0.tgz"}}}`, "own=https://own.example"},
		"a registry of pnpm's 5":         {"pnpm-lock.yaml", "lockfileVersion: 5.4\npackages:\n  own.example/own/1.0.0:\n    resolution: {integrity: x}\n  own.example/@s/own/1.0.0_react@17.0.2:\n    resolution: {integrity: x}\n  /six/1.0.0:\n    resolution: {integrity: x}\n", "own=own.example @s/own=own.example"},
		"a registry of pnpm's 6":         {"pnpm-lock.yaml", "lockfileVersion: '6.0'\npackages:\n  own.example/@s/own@1.0.0:\n    resolution: {integrity: x}\n  /@s/six@1.0.0:\n    resolution: {integrity: x}\n", "@s/own=own.example"},
		"a tarball of pnpm's 5":          {"pnpm-lock.yaml", "lockfileVersion: 5.4\npackages:\n  /@s/own/1.0.0:\n    resolution: {integrity: x, tarball: 'https://own.example/@s/own/-/own-1.0.0.tgz'}\n", "@s/own=https://own.example"},
		"a name beside pnpm's host":      {"pnpm-lock.yaml", "lockfileVersion: 5.4\npackages:\n  own.example/own/1.0.0:\n    resolution: {integrity: x}\n    name: own\n    version: 1.0.0\n", "own=own.example"},
		"a registry beside pnpm's hash":  {"pnpm-lock.yaml", "lockfileVersion: '6.0'\npackages:\n  /own@1.0.0:\n    resolution: {integrity: x, registry: 'https://own.example/'}\n", "own=https://own.example/"},
		"a directory of pnpm's":          {"pnpm-lock.yaml", "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      own:\n        specifier: ^1\n        version: link:../own\n", "own="},
		"a directory of pnpm's 5":        {"pnpm-lock.yaml", "lockfileVersion: 5.4\ndependencies:\n  own: link:../own\n  six: 1.0.0\n", "own="},
		"an early source of uv's":        {"uv.lock", "version = 1\n[[distribution]]\nname = 'own'\nsource = 'registry+https://own.example/simple'\n[[distribution]]\nname = 'git'\nsource = 'git+https://x.example/g'\n", "own=https://own.example/simple git="},
		"no source's name in Pipfile's":  {"Pipfile.lock", `{"_meta":{"sources":[{"name":"o","url":"https://own.example/simple"}]},"default":{"own":{"version":"==1"},"git":{"git":"https://x.example/g"}}}`, "own=https://own.example/simple git="},
		"a source that nobody has":       {"Pipfile.lock", `{"_meta":{"sources":[]},"default":{"own":{"index":"o"}}}`, "own="},
		"no list of uv's":                {"uv.lock", "package = 'x'\n", "error"},
		"no name":                        {"poetry.lock", "[[package]]\nversion = '1'\n", "error"},
		"a source of poetry's, no table": {"poetry.lock", "[[package]]\nname = 'own'\nsource = 'own'\n", "error"},
		"a key of pnpm's without a name": {"pnpm-lock.yaml", "packages:\n  own:\n    resolution: {integrity: x}\n", "error"},
	} {
		all, err := lockfile.Origins(c.name, []byte(c.data))
		var got []string
		for _, o := range all {
			got = append(got, o.Name+"="+o.Registry)
		}
		if said := strings.Join(got, " "); (err != nil) != (c.want == "error") || err == nil && said != c.want {
			t.Errorf("%s: %.200q, %v; want %q", what, said, err, c.want)
		}
	}
}

// TestOriginsOfOtherEditors: a mark before the text, and lines that end as on Windows, change nothing,
// in no format. The readers of a project's files take the mark away (manifest.Decode).
func TestOriginsOfOtherEditors(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"package-lock.json": "{\n\"lockfileVersion\": 3,\n\"packages\": {\n\"node_modules/own\": {\"version\": \"1.0.0\",\n\"resolved\": \"https://own.example/own/-/own-1.0.0.tgz\"}}}\n",
		"Pipfile.lock":      "{\"_meta\": {\"sources\": [\n{\"name\": \"o\", \"url\": \"https://own.example/simple\"}]},\n\"default\": {\"own\": {\"version\": \"==1\"}}}\n",
		"uv.lock":           "version = 1\n[[package]]\nname = \"own\"\nversion = \"1\"\nsource = { registry = \"https://own.example/simple\" }\n",
		"poetry.lock":       "[[package]]\nname = \"own\"\nversion = \"1\"\n[package.source]\ntype = \"legacy\"\nurl = \"https://own.example/simple\"\nreference = \"o\"\n",
		"pdm.lock":          "[[package]]\nname = \"own\"\nversion = \"1\"\ngit = \"https://x.example/own\"\n",
		"pylock.toml":       "lock-version = \"1.0\"\n[[packages]]\nname = \"own\"\nversion = \"1\"\nindex = \"https://own.example/simple\"\n",
		"pnpm-lock.yaml":    "lockfileVersion: '6.0'\npackages:\n\n  own.example/own@1.0.0:\n    resolution: {integrity: x}\n",
	} {
		plain, err := lockfile.Origins(name, []byte(text))
		if err != nil || len(plain) != 1 || plain[0].Name != "own" {
			t.Errorf("%s: %v, %v", name, plain, err)
			continue
		}
		for _, other := range []string{"\ufeff" + text, strings.ReplaceAll(text, "\n", "\r\n"), "\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")} {
			decoded, err := manifest.Decode([]byte(other))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := lockfile.Origins(name, decoded); err != nil || !slices.Equal(got, plain) {
				t.Errorf("%s, as %.20q: %v, %v; want %v", name, other, got, err, plain)
			}
		}
	}
}

// TestOriginsTakeBoundedWork: a lockfile of many sources and entries is not multiplied.
func TestOriginsTakeBoundedWork(t *testing.T) {
	t.Parallel()
	var sources, entries strings.Builder
	for i := range 90_000 {
		fmt.Fprintf(&sources, `{"name":"s%d","url":"u"},`, i)
		fmt.Fprintf(&entries, `"e%d":{},`, i)
	}
	began := time.Now()
	_, err := lockfile.Origins("Pipfile.lock", []byte(`{"_meta":{"sources":[`+strings.TrimSuffix(sources.String(), ",")+`]},"default":{`+strings.TrimSuffix(entries.String(), ",")+`}}`))
	if err == nil || !strings.Contains(err.Error(), "100000 entries") || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// TestAnAddressIsShownWithoutSecrets of any form.
func TestAnAddressIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"https://user:hunter2@own.example/x", "https://own.example/x?token=hunter2", "https://own.example/x#hunter2", "user:hunter2@own.example/x", "hunter2@own.example/x", "https://user:hunter2@own.example/%zz"} {
		if shown := lockfile.WithoutAccount(address); strings.Contains(shown, "hunter2") {
			t.Errorf("%s is shown as %s", address, shown)
		}
	}
}
