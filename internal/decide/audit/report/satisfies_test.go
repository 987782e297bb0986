package report

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func TestSatisfies(t *testing.T) {
	for _, c := range []struct {
		ecosystem       pkgref.Ecosystem
		version, wanted string
		meets, known    bool
	}{
		{pkgref.Python, "2.31.0", ">=2,<3", true, true},
		{pkgref.Python, "2.31.0", "2.31", true, true},
		{pkgref.Python, "2.31.0", "2.30", false, true},
		{pkgref.Python, "2.31.0", "latest", false, false},
		{pkgref.Node, "1.3.0-rc.1", "^1.2.0", true, true},
		{pkgref.Node, "2.0.0", "^1.2.0", false, true},
		{pkgref.Node, "2.0.0", "latest", false, false},
		{pkgref.Go, "v1.2.0", ">=v1.1.0", true, true},
		{pkgref.Go, "v1.2.0", ">=v1.3.0", false, true},
		{pkgref.Go, "v1.2.0", "v1.3.0", false, true},
		{pkgref.Go, "v1.2.0", "main", false, false},
		{pkgref.Rust, "1.2.0", ">=1,<2", true, true},
		{pkgref.Rust, "1.2.0", "1.3.0", false, true}, // a version is told from a tag everywhere
	} {
		meets, known := satisfies(pkgref.Ref{Ecosystem: c.ecosystem, Name: "x", Version: c.version}, c.wanted)
		if meets != c.meets || known != c.known {
			t.Errorf("%s %s, wanted %q: %v, %v", c.ecosystem, c.version, c.wanted, meets, known)
		}
	}
}
