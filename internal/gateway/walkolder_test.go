package gateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/pypi/pypitest"
)

// TestAWalkReadsNoReleaseThatIsOnlyShown: a page shows releases below the ones that are
// required. They admit nothing, and reading them would take the place of those that do.
func TestAWalkReadsNoReleaseThatIsOnlyShown(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "root", "1.0", "mid (>=93)"))
	var mids []pypitest.Dist
	for i := range 100 {
		var requires []string
		if i == 96 {
			requires = []string{"child"}
		}
		mids = append(mids, pypitest.Wheel(t, "mid", fmt.Sprintf("%d.0", i), requires...))
	}
	child := pypitest.Wheel(t, "child", "1.0")
	b.publish(mids...)
	b.publish(child)
	b.judges(lockedRoots)
	if a := b.get("/p/" + child.File); a.StatusCode != http.StatusOK {
		t.Errorf("what one of the admitted releases requires: %s", status(a))
	}
	for i, d := range mids[:93] {
		if b.registry.Count(filesHost+"/p/"+d.File+".metadata") > 0 {
			t.Errorf("mid %d.0, which nothing admits, was read", i)
		}
	}
}
