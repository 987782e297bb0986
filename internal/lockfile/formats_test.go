package lockfile_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// TestEveryNameHasAReader: what an ecosystem calls a lockfile is read here, as one of that
// ecosystem.
func TestEveryNameHasAReader(t *testing.T) {
	t.Parallel()
	names := 0
	for _, e := range pkgref.Ecosystems() {
		for _, l := range e.Lockfiles() {
			names++
			got, err := lockfile.Parse("folder/"+strings.ReplaceAll(l.Name, "*", "x"), nil)
			if err != nil && strings.Contains(err.Error(), "is not a known lockfile") {
				t.Errorf("%s of %s: %v", l.Name, e, err)
			}
			if err == nil && got.Ecosystem != e {
				t.Errorf("%s of %s is read as one of %s", l.Name, e, got.Ecosystem)
			}
		}
	}
	if names < 8 {
		t.Errorf("only %d names are known", names)
	}
}
