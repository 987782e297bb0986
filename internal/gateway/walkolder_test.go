package gateway_test

import (
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/audit"
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

// TestMetadataOfWhatAPageShows: uv reads the metadata of several older releases ahead, and
// takes a refusal of one for the end. The file of such a release is refused.
func TestMetadataOfWhatAPageShows(t *testing.T) {
	b := newBench(t, nil)
	b.publish(pypitest.Wheel(t, "root", "1.0", "child (>=2)", "capped (>=2)"))
	old, young := pypitest.Wheel(t, "child", "1.0", "deep"), pypitest.Wheel(t, "child", "2.0")
	blocked, stranger := pypitest.Wheel(t, "capped", "1.0"), pypitest.Wheel(t, "stranger", "1.0")
	b.publish(old, young)
	b.publish(blocked, pypitest.Wheel(t, "capped", "2.0"))
	b.publish(stranger)
	b.publish(pypitest.Wheel(t, "deep", "1.0"))
	log, _ := b.judges(strings.Replace(lockedRoots, "blocked_packages: {", "blocked_packages: { python: [ { name: capped, version: \"<2\" } ],", 1))
	if a := b.get("/simple/child/"); !strings.Contains(a.body, old.File) {
		t.Fatalf("the page: %s", status(a))
	}
	if a := b.get("/p/" + old.File + ".metadata"); a.StatusCode != http.StatusOK || a.body != string(old.Metadata) {
		t.Errorf("metadata of what the page shows: %s", status(a))
	}
	if n := len(slices.Collect(refusedOf(recorded(t, log), "child"))); n != 0 {
		t.Errorf("%d refusals of it are on record", n)
	}
	for _, path := range []string{old.File, "deep-1.0-py3-none-any.whl", "deep-1.0-py3-none-any.whl.metadata", blocked.File + ".metadata", stranger.File + ".metadata"} {
		if a := b.get("/p/" + path); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	if n := b.registry.Count(filesHost + "/p/" + old.File); n != 0 {
		t.Errorf("the file that is refused was fetched ahead %d times", n)
	}
}

// refusedOf are the refusals of a package.
func refusedOf(records []audit.Record, name string) iter.Seq[audit.Record] {
	return func(yield func(audit.Record) bool) {
		for _, r := range records {
			if r.Package == name && r.Outcome == audit.Blocked && !yield(r) {
				return
			}
		}
	}
}
