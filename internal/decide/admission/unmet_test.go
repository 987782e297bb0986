package admission

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestASuggestionIsOfTheRequirement: where a release needs one that an entry of the name leaves out (a pre-release, an older one),
// what is suggested lets in just that, whichever page was read first, and not the highest release that was withheld. Pre-releases
// that nothing needs are no cause.
func TestASuggestionIsOfTheRequirement(t *testing.T) {
	const document = "allowed_packages: { node: [ { name: web, with_dependencies: true }, { name: ts, %s with_dependencies: true } ] }"
	files := []door.File{
		archive(node("ts", "2.6.9")), archive(node("ts", "5.6.1-rc")), archive(node("ts", "6.0.3")), archive(node("ts", "7.1.0-dev.1")),
	}
	for name, c := range map[string]struct{ entry, specifier, want string }{
		"a pre-release":         {"", "5.6.1-rc", `version: "5.6.1-rc"`},
		"an older one":          {"version: ^6.0.0,", "~2.6.9", `version: "~2.6.9"`},
		"what the entry admits": {"", "^6.0.0", ""},
	} {
		for _, last := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				g := newGrove(t, strings.Replace(document, "%s", c.entry, 1), Limits{})
				_, err := g.Command(t.Context(), "sb1", "c1", []string{"npm", "install"})
				must(t, err)
				web := func() {
					g.showsPage(t, "web", map[string][]door.IndexRequirement{"4.0.0": {{Name: "ts", Specifier: c.specifier}}}, archive(node("web", "4.0.0")))
				}
				if !last {
					web()
				}
				g.showsPage(t, "ts", nil, files...)
				if last {
					web()
				}
				must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Code: 1, Claimed: true}))
				roots, err := g.Roots(t.Context(), "run1")
				must(t, err)
				var lines string
				for _, w := range roots.Lines {
					lines += w.Lines
				}
				if c.want == "" && lines != "" || !strings.Contains(lines, c.want) || strings.Contains(lines, "7.1") {
					t.Errorf("read last: %t: it suggests %q, not %q", last, lines, c.want)
				}
			})
		}
	}
}

// TestANameThatIsNotHadIsTheCause: where a client looked for a registry that is not served, nothing that it could have done without is
// told as why it failed, and suggested.
func TestANameThatIsNotHadIsTheCause(t *testing.T) {
	for elsewhere, want := range map[string]string{"": "mime 1.3.2", "before": "mime 1.3.2", "meanwhile": ""} {
		g := newGrove(t, toolsDocument, Limits{})
		seek := func() {
			a, err := g.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "npm.elsewhere.example", Port: 443})
			must(t, err)
			if a.Answer.Decision.Allowed() {
				t.Fatalf("%+v", a)
			}
		}
		if elsewhere == "before" { // such as what a tool tells home, in an install that went well
			_, err := g.Command(t.Context(), "sb1", "c0", []string{"npm", "install"})
			must(t, err)
			seek()
			must(t, g.CommandFinished(t.Context(), "sb1", "c0", channel.Exit{Claimed: true}))
		}
		_, err := g.Command(t.Context(), "sb1", "c1", []string{"npm", "install"})
		must(t, err)
		g.showsPage(t, "web", map[string][]door.IndexRequirement{"4.0.0": {{Name: "mime", Specifier: "^1.6.0"}}}, archive(node("web", "4.0.0")))
		g.showsPage(t, "mime", nil, script("mime", "1.3.2"), archive(node("mime", "1.6.0")))
		if elsewhere == "meanwhile" {
			seek()
		}
		must(t, g.CommandFinished(t.Context(), "sb1", "c1", channel.Exit{Code: 1, Claimed: true}))
		g.causeIs(t, want)
	}
}
