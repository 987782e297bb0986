package ui_test

import (
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// TestSheetKeepsNameAndValueApart: however long a name is.
func TestSheetKeepsNameAndValueApart(t *testing.T) {
	t.Parallel()
	s := &ui.Sheet{}
	s.Line("short", "%s", "one")
	s.Line("  entry points", "%s", "two")
	s.Line("a name that is long", "%s", "three")
	if want := "  short         one\n    entry points  two\n  a name that is long  three\n"; s.String() != want {
		t.Errorf("%q, want %q", s.String(), want)
	}
}
