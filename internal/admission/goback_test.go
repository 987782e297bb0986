package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/door"
)

const goBackDocument = `
packages: { default: deny }
allowed_packages: { python: [ { name: root, with_dependencies: true } ] }
`

// pageOf gives the versions of a Python project's page that a client may choose.
func (g *grove) pageOf(tb testing.TB, name string, versions ...string) string {
	tb.Helper()
	files := make([]door.File, len(versions))
	for i, v := range versions {
		files[i] = wheel(name, v)
	}
	a, err := g.door.Index(tb.Context(), indexOf(name, "of "+name, files...))
	must(tb, err)
	var shown []string
	for i, v := range versions {
		if a.Verdicts[a.OfFile[i]].Allowed() {
			shown = append(shown, v)
		}
	}
	return strings.Join(shown, " ")
}

// TestAResolverThatGoesBackHasReadThePage: it reads a page once, when the newest release
// of a parent requires the newest of a child. If that parent can't be had beside something
// else, an older one requires an older child, which the page must have shown. The older
// child itself is admitted only then.
func TestAResolverThatGoesBackHasReadThePage(t *testing.T) {
	t.Parallel()
	g := newGrove(t, goBackDocument, Limits{})
	g.reads(t, requirementTree{"root 5.0": {"child ~=4.2"}}, "root 5.0")
	if shown := g.pageOf(t, "child", "2.0", "3.0", "3.1rc1", "4.1", "4.2", "5.0"); shown != "2.0 3.0 4.1 4.2" {
		t.Fatalf("the page shows %s", shown)
	}
	may := func() (all []string) {
		for _, v := range []string{"2.0", "3.0", "4.1", "4.2", "5.0"} {
			if g.allows(t, "child", v) {
				all = append(all, v)
			}
		}
		return all
	}
	if got := may(); !slices.Equal(got, []string{"4.2"}) {
		t.Errorf("while only the newest parent was read, child may be had in %v", got)
	}
	g.reads(t, requirementTree{"root 4.0": {"child <4,>=3"}}, "root 4.0")
	if got := may(); !slices.Equal(got, []string{"3.0", "4.2"}) {
		t.Errorf("after an older parent was read, child may be had in %v", got)
	}
	if shown := g.pageOf(t, "stranger", "1.0"); shown != "" {
		t.Errorf("a page of what nothing requires shows %s", shown)
	}
}
