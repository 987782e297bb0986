package policy_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// TestLinesAreAddedAsTheyAre: the lines of a decision become an entry, or complete the one that has the same
// versions; an entry for all that a package requires and the lines for its scripts are one entry.
func TestLinesAreAddedAsTheyAre(t *testing.T) {
	const lines = "allowed_packages:\n  node:\n    - name: tool\n      max_version: \"0.x\"\n      install_scripts: true\n"
	tool := pkgref.Ref{Ecosystem: pkgref.Node, Name: "tool", Version: "0.2.0"}
	scripts := policy.Wanted{Package: tool.Project(), Lines: lines}
	for name, c := range map[string]struct {
		document string
		wanted   []policy.Wanted
		want     string
	}{
		"nothing is there": {"name: x\n", []policy.Wanted{scripts}, "name: x\n" + lines},
		"twice":            {"name: x\n", []policy.Wanted{scripts, scripts}, "name: x\n" + lines},
		"it is there":      {lines, []policy.Wanted{scripts}, lines},
		"the same versions without scripts": {
			"allowed_packages:\n  node:\n    - { name: tool, max_version: \"0.x\" }\n",
			[]policy.Wanted{scripts},
			"allowed_packages:\n  node:\n    - { name: tool, max_version: \"0.x\", install_scripts: true }\n",
		},
		"a root": {
			"name: x\n",
			[]policy.Wanted{{Package: tool, WithDependencies: true}, scripts},
			"name: x\nallowed_packages:\n  node:\n    - name: tool\n      max_version: \"0.x\"\n      with_dependencies: true\n      install_scripts: true\n",
		},
		"other versions": {
			"allowed_packages:\n  node:\n    - name: tool\n      with_dependencies: true\n",
			[]policy.Wanted{scripts},
			"allowed_packages:\n  node:\n    - name: tool\n      with_dependencies: true\n    - name: tool\n      max_version: \"0.x\"\n      install_scripts: true\n",
		},
	} {
		got, _, err := policy.SuggestWanted([]byte(c.document), c.wanted)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	for _, c := range [][2]string{
		{"prereleases: true", "install_scripts: true"}, // or the scripts of pre-releases would be let in, too
		{"with_dependencies: true", "prereleases: true"},
	} {
		entry := func(key string) string {
			return "allowed_packages: { node: [ { name: tool, max_version: \"0.x\", " + key + " } ] }\n"
		}
		if got, _, err := policy.SuggestWanted([]byte(entry(c[0])), []policy.Wanted{{Package: tool.Project(), Lines: entry(c[1])}}); err == nil || !strings.Contains(err.Error(), "tool") {
			t.Errorf("an entry with %s and lines with %s: %v\n%s", c[0], c[1], err, got)
		}
	}
	for _, other := range []string{"packages:\n  sdist: allow\n", "network_allowlist:\n  - x.example\n", lines + "packages:\n  default: allow\n", "", "- x"} {
		if policy.AreEntries(other) {
			t.Errorf("these are no entries alone:\n%s", other)
		}
	}
	blocked := "blocked_packages: { node: [ { name: tool } ] }\n"
	if _, _, err := policy.SuggestWanted([]byte(blocked), []policy.Wanted{scripts}); err == nil || !strings.Contains(err.Error(), "blocked") {
		t.Errorf("what is blocked gets an entry: %v", err)
	}
}
