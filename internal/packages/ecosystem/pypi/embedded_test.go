package pypi

import (
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// TestWheelsInside: what a file carries as whole wheels is found like what it
// carries unpacked.
func TestWheelsInside(t *testing.T) {
	var c contents
	for _, path := range []string{
		"virtualenv/seed/wheels/embed/pip-24.0-py3-none-any.whl", "virtualenv/seed/wheels/embed/pip-24.0-py3-none-any.whl",
		"x/Set_Tools-69.5.1-1-py3-none-any.whl", "x/odd.whl", "x/a-b.whl", "x/wheel.py", "own-1.0.dist-info/METADATA", "y/vendored-2.0.dist-info/RECORD",
	} {
		c.addPath(path, "own-1.0.dist-info")
	}
	want := []ecosystem.Bundled{{Name: "pip", Version: "24.0"}, {Name: "set-tools", Version: "69.5.1"}, {Name: "vendored", Version: "2.0"}}
	if !slices.Equal(c.bundled, want) {
		t.Errorf("%+v, want %+v", c.bundled, want)
	}
}
