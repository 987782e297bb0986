package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestPullIsBounded: publishers decide how many releases there are, who requires whom and in how many ways.
// One question about all that is answered in moderate time, and what is not looked at is Unmet.
func TestPullIsBounded(t *testing.T) {
	const projects, releases = 60, 1_500
	l := New(Limits{Edges: 1 << 30, Requirements: 1 << 30, EdgesPerParent: 1 << 30, Remembered: 1 << 40}, NewBudget(1<<40, 1<<40), nil, nil)
	ref := func(i int) pkgref.Ref { return pkgref.Ref{Ecosystem: pkgref.Node, Name: fmt.Sprint("p", i)} }
	for i := range projects {
		page := &Page{digest: "d", epoch: "e"}
		var reqs []door.IndexRequirement
		for v := range releases {
			version := fmt.Sprintf("1.%d.0", v)
			page.versions, page.says = append(page.versions, version), append(page.says, sayListed)
			if v != releases-1 { // the one that is chosen requires nothing
				reqs = append(reqs, door.IndexRequirement{Name: ref((i + 1) % projects).Name, Specifier: "~" + version, Versions: []string{version}})
			}
		}
		l.releases.SetPage(ref(i), page)
		if err := l.setPage(ref(i), "e", reqs); err != nil {
			t.Fatal(err)
		}
	}
	lacking := map[string]bool{}
	for v := range releases {
		lacking[fmt.Sprintf("~1.%d.0", v)] = true
	}
	began := time.Now()
	if got, by := l.Pull(ref(0), lacking); got != PullUnmet || len(by) == 0 || len(by) > maxUnmet {
		t.Errorf("it is %s, by %q", got, by)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
}
