package pkgref_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestTraits: every ecosystem has names of its own elsewhere, and its example is a range
// that it can read; what is no ecosystem has nothing.
func TestTraits(t *testing.T) {
	t.Parallel()
	names, letters := map[string]bool{}, map[byte]bool{}
	for _, e := range pkgref.Ecosystems() {
		traits := e.Traits()
		if traits.OSV == "" || traits.Table == 0 || names[traits.OSV] || letters[traits.Table] {
			t.Errorf("%s: its names elsewhere are %q and %q", e, traits.OSV, traits.Table)
		}
		if of, ok := pkgref.OfFile("x" + traits.Archive); !ok || of != e || traits.Archive == "" {
			t.Errorf("%s: a file %q is of %q", e, traits.Archive, of)
		}
		names[traits.OSV], letters[traits.Table] = true, true
		if _, ok := pkgref.ParseRange(e, traits.SpecifierExample); !ok {
			t.Errorf("%s can't read its own example %q", e, traits.SpecifierExample)
		}
		if _, err := pkgref.CanonicalVersion(e, traits.VersionLetter+"1.2.3"); err != nil {
			t.Errorf("%s: versions do not begin with %q: %v", e, traits.VersionLetter, err)
		}
		if _, err := pkgref.CanonicalVersion(e, "1.2.3"); (err == nil) != (traits.VersionLetter == "") {
			t.Errorf("%s: versions begin with %q: %v", e, traits.VersionLetter, err)
		}
	}
	if got := pkgref.Ecosystem("none").Traits(); got != (pkgref.Traits{}) {
		t.Errorf("what is no ecosystem has %+v", got)
	}
}
