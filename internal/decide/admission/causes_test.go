package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// toolsDocument is a policy with a project's roots, and no entry for what they require.
const toolsDocument = "allowed_packages: { node: [ { name: web, with_dependencies: true }, { name: runner, with_dependencies: true } ] }"

// script is a release's archive whose package runs something when it is installed.
func script(name, version string) door.File {
	f := archive(node(name, version))
	f.Scripts = true
	return f
}

// showsPage asks for a page of these files, as a client that reads requirements there does.
func (g *grove) showsPage(tb testing.TB, name string, requires map[string][]door.IndexRequirement, files ...door.File) {
	tb.Helper()
	ask := door.IndexAsk{Sandbox: "sb1", Package: node(name, ""), SourceURL: "https://npm.example/" + name, IndexDigest: "of " + name, Files: files}
	a, err := g.door.Index(tb.Context(), ask)
	must(tb, err)
	var reqs []door.IndexRequirement
	for i, f := range files {
		if !a.Verdicts[a.OfFile[i]].Allowed() {
			continue
		}
		for _, r := range requires[f.Version] {
			r.Versions = []string{f.Version}
			reqs = append(reqs, r)
		}
	}
	if a.WantEdges {
		must(tb, g.door.EdgesOfIndex(tb.Context(), "sb1", node(name, ""), ask.IndexDigest, reqs))
	}
}

// TestTheCauseIsToldAlone: a client reads the pages of a whole tree and ends at the one release that it
// can't have. Pages that withhold what nobody needs (pre-releases, releases that run scripts where the tree
// takes others, what is optional, what only an old release would need that no client chooses) are no causes,
// by the summary, by the suggestion and by why. Each case alone is one, or none.
func TestTheCauseIsToldAlone(t *testing.T) {
	type page struct {
		name  string
		files []door.File
	}
	one := func(name, specifier string) []door.IndexRequirement {
		return []door.IndexRequirement{{Name: name, Specifier: specifier}}
	}
	optional := one("watch", "~2.0.0")
	optional[0].Optional = true
	web := map[string][]door.IndexRequirement{
		"2.0.0": one("mime", "1.3.2"),
		"4.0.0": slices.Concat(one("mime", "^1.6.0"), one("lib", "^1.0.0"), one("bundler", "^5.0.0"), optional),
	}
	met := page{"mime", []door.File{script("mime", "1.3.2"), archive(node("mime", "1.6.0"))}}
	stale := page{"mime", []door.File{script("mime", "1.3.2"), archive(node("mime", "1.6.0"))}}
	pre := page{"lib", []door.File{archive(node("lib", "1.0.0")), archive(node("lib", "2.0.0-rc.1"))}}
	without := page{"watch", []door.File{script("watch", "2.0.0"), script("watch", "2.0.1")}}
	lacks := page{"bundler", []door.File{archive(node("bundler", "4.0.0")), script("bundler", "5.0.0"), script("bundler", "5.1.0")}}
	for name, c := range map[string]struct {
		pages []page
		want  string // by all; "?": where the client fails, since nothing else would say why
	}{
		"all of a tree":                    {[]page{met, pre, without, lacks}, "node bundler 5.1.0"},
		"in another order":                 {[]page{lacks, without, pre, met}, "node bundler 5.1.0"},
		"another release will do":          {[]page{met}, "?node mime 1.3.2"},
		"an old release alone needs it":    {[]page{stale, lacks}, "node bundler 5.1.0"},
		"a pre-release":                    {[]page{pre}, ""},
		"an optional one":                  {[]page{without, lacks}, "node bundler 5.1.0"},
		"a root, of which nobody knows":    {[]page{{"runner", []door.File{archive(node("runner", "1.0.0")), script("runner", "2.0.0")}}}, "node runner 2.0.0"},
		"such a root beside a sure cause":  {[]page{{"runner", []door.File{archive(node("runner", "1.0.0")), script("runner", "2.0.0")}}, lacks}, "node bundler 5.1.0"},
		"a name on no list, which is sure": {[]page{{"other", []door.File{archive(node("other", "1.0.0"))}}, met}, "node other"},
	} {
		for _, fails := range []bool{false, true} {
			want, onlyThen := strings.CutPrefix(c.want, "?")
			if onlyThen && !fails {
				want = ""
			}
			t.Run(fmt.Sprintf("%s, failing %t", name, fails), func(t *testing.T) {
				g := newGrove(t, toolsDocument, Limits{})
				_, err := g.Command(t.Context(), "sb1", "c1", []string{"npm", "install"})
				must(t, err)
				g.showsPage(t, "web", web, archive(node("web", "2.0.0")), archive(node("web", "4.0.0")))
				for _, p := range c.pages {
					g.showsPage(t, p.name, nil, p.files...)
				}
				if fails {
					must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Code: 1, Claimed: true}))
				}
				g.causeIs(t, strings.TrimPrefix(want, "node "))
			})
		}
	}
}

// causeIs compares what the summary, why and the suggestion take for the cause: a name, with the version that
// the summary has.
func (g *grove) causeIs(t *testing.T, want string) {
	t.Helper()
	project, _, _ := strings.Cut(want, " ")
	sum, err := g.Summary(t.Context(), "run1")
	must(t, err)
	if got := lineOf(sum.Refused); got != want {
		t.Errorf("the summary has %q refused, want %q", got, want)
	}
	list, err := g.RefusalsOf(t.Context(), Sought{Run: "run1", Causes: true})
	must(t, err)
	list = slices.DeleteFunc(list, func(r door.Refusal) bool { return r.Package.Name == "" }) // what is no package is always told
	var why []string
	for i, r := range list {
		if r.Cause {
			why = append(why, r.Package.Name)
		}
		if r.Cause && i != len(why)-1 {
			t.Errorf("%s is a cause, and told after others", r.Package)
		}
	}
	if got := strings.Join(why, ", "); got != project {
		t.Errorf("why tells %q first, want %q", got, project)
	}
	roots, err := g.Roots(t.Context(), "run1")
	must(t, err)
	var suggested []string
	for _, r := range roots.Roots {
		suggested = append(suggested, r.Package.Name)
	}
	for _, w := range roots.Lines {
		if !strings.Contains(w.Lines, "install_scripts: true") {
			t.Errorf("%s would be let in without its scripts: %s", w.Package, w.Lines)
		}
		suggested = append(suggested, w.Package.Name)
	}
	if got := strings.Join(suggested, ", "); got != project {
		t.Errorf("%q is suggested, want %q", got, project)
	}
}

// TestEachCauseIsLiftedOrExplained: for each refusal for which why prints lines, the suggestion has the same
// lines, or an entry of what leads to it, or a sentence.
func TestEachCauseIsLiftedOrExplained(t *testing.T) {
	g := newGrove(t, "packages: { sdist: deny }\nallowed_packages: { python: [ { name: rich, max_version: '1.x' }, { name: src } ], node: [ { name: runner } ] }\nblocked_packages: { python: [ { name: evil } ] }", Limits{})
	ctx := t.Context()
	source := judging("src", "1.0")
	source.File = sdist("src", "1.0")
	for _, ask := range []door.JudgeAsk{judging("rich", "2.0"), judging("evil", "1.0"), judging("flask", "3.0"), source} {
		_, err := g.Judge(ctx, ask)
		must(t, err)
	}
	g.showsPage(t, "runner", nil, script("runner", "2.0.0"))
	list, err := g.RefusalsOf(ctx, Sought{Run: "run1", Causes: true})
	must(t, err)
	roots, err := g.Roots(ctx, "run1")
	must(t, err)
	got := map[string]string{}
	for _, r := range list {
		for _, w := range roots.Lines {
			if w.Package.Name == r.Package.Name && w.Lines == r.Suggest {
				got[r.Package.Name] += "lines"
			}
		}
		for _, root := range roots.Roots {
			if root.Package.Name == r.Package.Name {
				got[r.Package.Name] += "root"
			}
		}
		for _, stays := range roots.Stays {
			if strings.HasPrefix(stays, r.Package.String()+": ") {
				got[r.Package.Name] += "stays"
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"rich": "lines", "evil": "stays", "flask": "root", "src": "stays", "runner": "lines"}, got); diff != "" {
		t.Error(diff)
	}
}
