package policy_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

func python(name, version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: version}
}

func TestSuggest(t *testing.T) {
	tests := []struct {
		name     string
		document string
		refused  []pkgref.Ref
		want     string
	}{
		{
			"a block list gets an element at its end",
			"# top\nallowed_packages: # lists\n  python:\n    # first\n    - name: numpy # n\n      max_version: \"2.x\"\n\n  # of node\n  node: []\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"# top\nallowed_packages: # lists\n  python:\n    # first\n    - name: numpy # n\n      max_version: \"2.x\"\n" +
				"    - name: idna\n      max_version: \"3.x\"\n\n  # of node\n  node: []\n",
		},
		{
			"dashes that are not indented",
			"allowed_packages:\n  python:\n  - name: numpy\nname: x\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"allowed_packages:\n  python:\n  - name: numpy\n  - name: idna\n    max_version: \"3.x\"\nname: x\n",
		},
		{
			"an element over several lines, whose end has no position",
			"allowed_packages:\n  python:\n    - { name: numpy,\n        max_version: \"2.x\"\n      }\nname: x\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"allowed_packages:\n  python:\n    - name: idna\n      max_version: \"3.x\"\n    - { name: numpy,\n        max_version: \"2.x\"\n      }\nname: x\n",
		},
		{
			"an empty flow list",
			"allowed_packages: { python: [] } # none\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"allowed_packages: { python: [ { name: idna, max_version: \"3.x\" }] } # none\n",
		},
		{
			"a flow list with elements",
			"allowed_packages:\n  python: [ { name: numpy },\n    { name: pandas } ]\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"allowed_packages:\n  python: [ { name: idna, max_version: \"3.x\" }, { name: numpy },\n    { name: pandas } ]\n",
		},
		{
			"another ecosystem",
			"allowed_packages:\n  python: []\n",
			[]pkgref.Ref{{Ecosystem: pkgref.Node, Name: "@s/x", Version: "1.2.3"}},
			"allowed_packages:\n  python: []\n  node:\n    - name: \"@s/x\"\n      max_version: \"1.x\"\n",
		},
		{
			"no list at all, no line feed at the end",
			"name: x",
			[]pkgref.Ref{python("idna", "3.7")},
			"name: x\nallowed_packages:\n  python:\n    - name: idna\n      max_version: \"3.x\"\n",
		},
		{
			"a document with an end mark",
			"---\nname: x\n...\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"---\nallowed_packages:\n  python:\n    - name: idna\n      max_version: \"3.x\"\nname: x\n...\n",
		},
		{
			"a document in braces",
			"{name: \"x\"}\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"{ allowed_packages: { python: [ { name: idna, max_version: \"3.x\" } ] },name: \"x\"}\n",
		},
		{
			"lines that end as on Windows",
			"name: x\r\nallowed_packages:\r\n  python:\r\n    - name: numpy\r\n",
			[]pkgref.Ref{python("idna", "3.7")},
			"name: x\r\nallowed_packages:\r\n  python:\r\n    - name: numpy\r\n    - name: idna\r\n      max_version: \"3.x\"\r\n",
		},
		{
			"a version above the cap, and one entry for all of a minor version",
			"allowed_packages:\n  python:\n    - name: numpy\n      max_version: \"2.x\"\n",
			[]pkgref.Ref{python("numpy", "3.1.4"), python("numpy", "3.1.0"), python("numpy", "2.0")},
			"allowed_packages:\n  python:\n    - name: numpy\n      max_version: \"2.x\"\n    - name: numpy\n      version: \"==3.1.*\"\n",
		},
		{
			"a pre-release",
			"allowed_packages:\n  python:\n    - name: numpy\n",
			[]pkgref.Ref{python("numpy", "3.0.0rc1")},
			"allowed_packages:\n  python:\n    - name: numpy\n    - name: numpy\n      version: \"==3.0.*\"\n      prereleases: true\n",
		},
		{
			"names that YAML would take for something else",
			"allowed_packages: {}\n",
			[]pkgref.Ref{python("null", "1.0"), python("7", "1.0"), python("on", "")},
			"allowed_packages: { python: [ { name: \"on\" }, { name: \"null\", max_version: \"1.x\" }, { name: \"7\", max_version: \"1.x\" } ]}\n",
		},
		{
			"a document without a line feed at its end",
			"name: x",
			[]pkgref.Ref{python("a", "1.0")},
			"name: x\nallowed_packages:\n  python:\n    - name: a\n      max_version: \"1.x\"\n",
		},
		{
			"the higher version's entry admits the lower one",
			"name: x\n",
			[]pkgref.Ref{python("a", "1.0"), python("a", "2.5"), python("a", "2.5")},
			"name: x\nallowed_packages:\n  python:\n    - name: a\n      max_version: \"2.x\"\n",
		},
		{
			"what is blocked or allowed is left out",
			"blocked_packages:\n  python: [ { name: evil } ]\n",
			[]pkgref.Ref{python("evil", "1.0"), python("a", "1.0")},
			"blocked_packages:\n  python: [ { name: evil } ]\nallowed_packages:\n  python:\n    - name: a\n      max_version: \"1.x\"\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, diff, err := policy.Suggest([]byte(tt.document), tt.refused)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("the new document is\n%s\nand not\n%s", got, tt.want)
			}
			if !strings.Contains(diff, "\n+") || !strings.HasPrefix(diff, "--- policy\n+++ policy (suggested)\n") {
				t.Errorf("the diff is\n%s", diff)
			}
			for side, whole := range map[byte]string{'-': tt.document, '+': tt.want} {
				for _, part := range hunks(diff, side) {
					if !strings.Contains(whole, part) {
						t.Errorf("the diff does not apply: %q is not in the document %q", part, whole)
					}
				}
			}
		})
	}
}

// hunks are a unified diff's hunks as one side of it has them: what patch looks
// for in the document ('-'), what it puts there ('+').
func hunks(diff string, side byte) []string {
	var all []string
	for line := range strings.Lines(diff) {
		last := len(all) - 1
		switch {
		case strings.HasPrefix(line, "@@ "):
			all = append(all, "")
		case last < 0: // the head
		case line[0] == '\\':
			all[last] = strings.TrimSuffix(all[last], "\n")
		case line[0] == ' ' || line[0] == side:
			all[last] += line[1:]
		}
	}
	return all
}

// A release that was asked for comes with what it requires, and with a cap; what is only required
// by that needs no entry.
func TestSuggestWanted(t *testing.T) {
	root := func(name, version string) policy.Wanted {
		return policy.Wanted{Package: python(name, version), WithDependencies: true}
	}
	through := func(name, version, parent string) policy.Wanted {
		return policy.Wanted{Package: python(name, version), Through: []pkgref.Ref{python(parent, "")}}
	}
	const one = "allowed_packages:\n  python:\n"
	tests := []struct {
		name, document string
		wanted         []policy.Wanted
		want           string
	}{
		{
			"on no list", "name: x\n",
			[]policy.Wanted{through("idna", "3.7", "requests"), root("requests", "2.32.3")},
			"name: x\n" + one + "    - name: requests\n      max_version: \"2.x\"\n      with_dependencies: true\n",
		},
		{
			"of unknown version", "name: x\n",
			[]policy.Wanted{root("requests", "")},
			"name: x\n" + one + "    - name: requests\n      with_dependencies: true\n",
		},
		{
			"listed alone", one + "    - { name: rich, version: \"==13.*\", max_version: \"13.7.x\" } # tables\n",
			[]policy.Wanted{root("rich", ""), through("mdurl", "0.1.2", "rich")},
			one + "    - { name: rich, version: \"==13.*\", max_version: \"13.7.x\", with_dependencies: true } # tables\n",
		},
		{
			"listed over several lines", one + "    - name: rich # tables\n      version: \"==13.*\"\n    - name: idna\n",
			[]policy.Wanted{root("rich", "13.7.1")},
			one + "    - name: rich # tables\n      version: \"==13.*\"\n      with_dependencies: true\n    - name: idna\n",
		},
		{
			"in a list on one line", "allowed_packages: { python: [{name: idna}, {name: rich}] }\n",
			[]policy.Wanted{root("rich", "13.7.1")},
			"allowed_packages: { python: [{name: idna}, {name: rich, with_dependencies: true}] }\n",
		},
		{
			"in braces over several lines", one + "    - { name: rich,\n        version: \"==13.*\"\n      }\n",
			[]policy.Wanted{root("rich", "13.7.1")},
			one + "    - { with_dependencies: true, name: rich,\n        version: \"==13.*\"\n      }\n",
		},
		{
			"only the entry that it comes by", one + "    - { name: rich, version: \"==12.*\" }\n    - { name: rich, version: \"==13.*\" }\n",
			[]policy.Wanted{root("rich", "12.1.0")},
			one + "    - { name: rich, version: \"==12.*\", with_dependencies: true }\n    - { name: rich, version: \"==13.*\" }\n",
		},
		{
			"has its dependencies already, and one is wanted otherwise", one + "    - { name: rich, with_dependencies: true }\n",
			[]policy.Wanted{root("rich", ""), through("mdurl", "0.1.2", "rich")},
			one + "    - { name: rich, with_dependencies: true }\n    - name: mdurl\n      max_version: \"0.x\"\n",
		},
		{
			"above its cap", one + "    - { name: rich, max_version: \"12.x\", with_dependencies: true }\n",
			[]policy.Wanted{root("rich", "13.7.1")},
			one + "    - { name: rich, max_version: \"12.x\", with_dependencies: true }\n    - name: rich\n      version: \"==13.7.*\"\n      with_dependencies: true\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, err := policy.SuggestWanted([]byte(tt.document), tt.wanted)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("the new document is\n%s\nand not\n%s", got, tt.want)
			}
		})
	}
}

func TestSuggestCanNot(t *testing.T) {
	tests := map[string]struct {
		document string
		refused  pkgref.Ref
	}{
		"blocked":       {"blocked_packages: { python: [ { name: evil } ] }\n", python("evil", "1.0")},
		"not canonical": {"name: x\n", python("Evil\n- name: other", "1.0")},
		"no version":    {"name: x\n", python("evil", "1.0\", prereleases: true")},
		"locked":        {"packages: { lockfile: { files: [uv.lock] } }\n", python("a", "1.0")},
		"no document":   {"", python("a", "1.0")},
	}
	for name, tt := range tests {
		if got, _, err := policy.Suggest([]byte(tt.document), []pkgref.Ref{tt.refused}); err == nil {
			t.Errorf("%s: suggests\n%s", name, got)
		}
	}
	document := []byte("allowed_packages: { python: [ { name: a } ] }\n")
	got, diff, err := policy.Suggest(document, []pkgref.Ref{python("a", "1.0")})
	if err != nil || diff != "" || string(got) != string(document) {
		t.Errorf("an allowed package changes the document: %v\n%s", err, diff)
	}
}

// TestSuggestAlways: whatever the layout, the new document parses, allows what
// was refused, and has every line of the old one.
func TestSuggestAlways(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := drawDocument(rt)
		g.ageSource = "ignore" // Suggest does not loosen the age
		document := g.yaml()
		p, err := policy.Parse("p", []byte(document))
		if err != nil {
			rt.Fatalf("%v\n%s", err, document)
		}
		ref := python(drawName(rt), rapid.SampledFrom(someVersions()).Draw(rt, "version"))
		before := p.Decide(clock(), policy.Input{Subject: policy.Subject{Package: ref}, FileFacts: policy.FileFacts{Kind: policy.KindWheel}})
		got, _, err := policy.Suggest([]byte(document), []pkgref.Ref{ref})
		if err != nil {
			if before.ResolvedBy != policy.ByBlocklist && before.ResolvedBy != policy.ByCanonical {
				rt.Fatalf("%v: %v\n%s", ref, err, document)
			}
			return
		}
		again, err := policy.Parse("p", got)
		if err != nil {
			rt.Fatalf("%v\n%s", err, got)
		}
		j := again.Judge(clock(), policy.Subject{Package: ref})
		if d := j.File(policy.FileFacts{Version: ref.Version, Kind: policy.KindWheel}); d.Effect != policy.Allow {
			rt.Fatalf("%v is not allowed but %v\n%s", ref, d, got)
		}
	})
}

// A further version of a package that comes with what it requires comes with that as well, by a suggestion and by the
// lines of a refusal: else it is let in and can't be installed. If one of its entries has no such key, nor has this.
func TestAFurtherVersionComesAsTheOthers(t *testing.T) {
	t.Parallel()
	ref := pkgref.Ref{Ecosystem: pkgref.Node, Name: "preview", Version: "7.0.0-dev.20260401.1"}
	const one, two = "name: x\nallowed_packages:\n  node:\n    - { name: preview, with_dependencies: true }\n", "    - { name: preview, version: \"~1.0.0\" }\n"
	for document, want := range map[string]bool{one: true, one + two: false} {
		suggested, _, err := policy.Suggest([]byte(document), []pkgref.Ref{ref})
		if err != nil || strings.HasSuffix(string(suggested), "prereleases: true\n      with_dependencies: true\n") != want {
			t.Errorf("%s\nbecomes %v\n%s", document, err, suggested)
		}
		p, err := policy.Parse("policy", []byte(document))
		if err != nil {
			t.Fatal(err)
		}
		d := p.Judge(time.Time{}, policy.Subject{Package: ref}).Release(ref.Version)
		if d.Effect != policy.Deny || strings.Contains(d.Suggest, "with_dependencies") != want {
			t.Errorf("under\n%s\nit is %+v", document, d)
		}
	}
}

// A further entry that lets in a pre-release with what it requires lets the pre-releases of others come with no other
// version of that package: by which of its entries something came is not known of what that requires.
func TestAFurtherPreReleaseBringsNoOthersPreReleases(t *testing.T) {
	t.Parallel()
	const before = "name: x\nallowed_packages:\n  node:\n    - { name: preview, version: \"~1.0.0\", with_dependencies: true }\n"
	preview := pkgref.Ref{Ecosystem: pkgref.Node, Name: "preview", Version: "7.0.0-dev.1"}
	after, _, err := policy.Suggest([]byte(before), []pkgref.Ref{preview})
	if err != nil || !strings.Contains(string(after), "prereleases: true\n      with_dependencies: true") {
		t.Fatalf("%v: %s", err, after)
	}
	const only = "name: x\nallowed_packages:\n  node:\n    - { name: preview, prereleases: true, with_dependencies: true }\n"
	for _, tt := range []struct {
		document, version, specifier string
		want                         policy.Effect
	}{
		{before, "2.0.0-rc.1", ">=1", policy.Deny},
		{string(after), "2.0.0-rc.1", ">=1", policy.Deny},
		{string(after), "2.0.0-rc.1", "2.0.0-rc.1", policy.Allow}, // which the requirement names
		{string(after), "2.0.0", ">=1", policy.Allow},
		{only, "2.0.0-rc.1", ">=1", policy.Allow},
	} {
		p, err := policy.Parse("policy", []byte(tt.document))
		if err != nil {
			t.Fatal(err)
		}
		part := pkgref.Ref{Ecosystem: pkgref.Node, Name: "part"}
		parent := pkgref.Ref{Ecosystem: pkgref.Node, Name: "preview", Version: "1.0.0"}
		edge := policy.Edge{Parent: parent, Through: "allowed_packages.node.preview", Name: "part", Specifier: tt.specifier}
		if d := p.Judge(time.Time{}, policy.Subject{Package: part, Edges: []policy.Edge{edge}}).Release(tt.version); d.Effect != tt.want {
			t.Errorf("part %s, required as %s, is %s, not %s, under\n%s", tt.version, tt.specifier, d.Effect, tt.want, tt.document)
		}
	}
}
