package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// lineOf is what a summary's lines are about.
func lineOf(list []Line) string {
	var lines []string
	for _, p := range list {
		lines = append(lines, strings.TrimSpace(p.Name+" "+p.Version))
	}
	return strings.Join(lines, ", ")
}

// TestASummaryNamesWhatIsMissed: pre-releases that nobody asked for are in the log and
// not in the summary, and whatever is withheld that somebody wanted and did not get is.
func TestASummaryNamesWhatIsMissed(t *testing.T) {
	versions := []string{"0.8.0", "1.0.0", "1.1.0-rc.1", "2.0.0-beta.1"}
	const open = "packages: { default: allow }"
	for what, c := range map[string]struct {
		document string
		command  string
		requires string // what root 1.0.0 requires
		served   []string
		withheld string
		refused  string
	}{
		"nobody asked":                        {open, "npm install root", "dep ^1.0.0", []string{"1.0.0"}, "", ""},
		"nobody wanted it at all":             {open, "npm install root", "", nil, "", ""},
		"a command asked for one":             {open, "npm install root dep@2.0.0-beta.1", "dep ^1.0.0", []string{"1.0.0"}, "dep 1.1.0-rc.1 .. 2.0.0-beta.1", ""},
		"a command asked for one alone":       {open, "npm install dep@2.0.0-beta.1", "", nil, "dep 1.1.0-rc.1 .. 2.0.0-beta.1", "dep 2.0.0-beta.1"},
		"a command asked for a tag of it":     {open, "npm install dep@next", "", nil, "", "dep 2.0.0-beta.1"},
		"a command asked for another":         {open, "npm install dep@^1.0.0", "", []string{"1.0.0"}, "", ""},
		"a requirement of what is below it":   {"allowed_packages: { node: [ { name: root, with_dependencies: true }, { name: dep, version: '>=1' } ] }", "npm install root", "dep ^0.8.0", []string{"1.0.0"}, "dep 0.8.0", ""},
		"what is below it, and nobody wanted": {"allowed_packages: { node: [ { name: root, with_dependencies: true }, { name: dep, version: '>=1' } ] }", "npm install root", "dep *", []string{"1.0.0"}, "", ""},
		"what is above, under a cap":          {"allowed_packages: { node: [ { name: dep, max_version: '0.x' } ] }", "npm install dep", "", []string{"0.8.0"}, "dep 1.0.0 .. 2.0.0-beta.1", ""},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGrove(t, c.document, Limits{})
			_, err := g.Command(t.Context(), "sb1", "c1", strings.Fields(c.command))
			must(t, err)
			if c.requires != "" {
				g.page(t, "root", map[string][]string{"1.0.0": {c.requires}}, "1.0.0")
			}
			g.page(t, "dep", nil, versions...)
			for _, version := range c.served {
				g.servedAs(t, node("dep", version), "sha256:"+version)
			}
			sum, err := g.Summary(t.Context(), "run1")
			must(t, err)
			if diff := cmp.Diff([]string{c.withheld, c.refused}, []string{lineOf(sum.Withheld), lineOf(sum.Refused)}); diff != "" {
				t.Errorf("withheld and refused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhoEndsWellMissedNothing: a page that lacks releases is not refused to a client that
// only read it, and is to one that failed, and to what is around clients.
func TestWhoEndsWellMissedNothing(t *testing.T) {
	for what, c := range map[string]struct {
		command string
		code    int
		refused string
	}{
		"a client reads":                  {"npm view dep", 0, ""},
		"a client fails":                  {"npm view dep", 1, "dep 2.0.0"},
		"an install fails":                {"npm install dep", 1, "dep 2.0.0"},
		"a script ends well all the same": {"sh -c npm_install_dep", 0, "dep 2.0.0"},
		"an agent does":                   {"agent npm install dep", 0, "dep 2.0.0"},
	} {
		t.Run(what, func(t *testing.T) {
			g := newGrove(t, "allowed_packages: { node: [ { name: dep, max_version: '1.x' } ] }", Limits{})
			_, err := g.Command(t.Context(), "sb1", "c1", strings.Fields(c.command))
			must(t, err)
			g.page(t, "dep", nil, "1.0.0", "2.0.0")
			must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Code: c.code}))
			sum, err := g.Summary(t.Context(), "run1")
			must(t, err)
			if diff := cmp.Diff([]string{"dep 2.0.0", c.refused}, []string{lineOf(sum.Withheld), lineOf(sum.Refused)}); diff != "" {
				t.Errorf("withheld and refused (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatNoUpstreamHasIsNobodysRefusal: it has a word and a count of its own.
func TestWhatNoUpstreamHasIsNobodysRefusal(t *testing.T) {
	g := newGrove(t, "packages: { default: allow }", Limits{})
	for name, rule := range map[string]string{"gone": door.RuleMissing, "away": door.RuleFailed, "broken": ""} {
		_, err := g.Failed(t.Context(), door.Failure{Sandbox: "sb1", Package: pkgref.Ref{Ecosystem: pkgref.Node, Name: name}, ResolvedBy: policy.ByIntegrity, Rule: rule, Reason: "a reason"})
		must(t, err)
	}
	_, err := g.InventoryUnknown(t.Context(), "sb1", "it is dead", false)
	must(t, err)
	sum, err := g.Summary(t.Context(), "run1")
	must(t, err)
	if !strings.Contains(sum.Unlisted, "it is dead") {
		t.Errorf("why the packages were not listed: %q", sum.Unlisted)
	}
	if lineOf(sum.Missing) != "gone" || lineOf(sum.Failed) != "away" || lineOf(sum.Refused) != "broken" {
		t.Errorf("missing %q, failed %q, refused %q", lineOf(sum.Missing), lineOf(sum.Failed), lineOf(sum.Refused))
	}
}

// TestExtent: a range of no versions is one of files.
func TestExtent(t *testing.T) {
	for want, w := range map[string]audit.WithheldRange{
		" (3 versions, 1.0 to 2.0)":             {From: "1.0", To: "2.0", Versions: 3, Files: 5},
		" (1.0)":                                {From: "1.0", To: "1.0", Versions: 1, Files: 2},
		" (2 files of 1.0 to 2.0, and not all)": {From: "1.0", To: "2.0", Files: 2},
		" (a file of 1.0, and not all)":         {From: "1.0", To: "1.0", Files: 1},
	} {
		if got := extent(w); got != want {
			t.Errorf("%+v is%s, want%s", w, got, want)
		}
	}
}
