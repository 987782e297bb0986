package claims_test

import (
	"maps"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/claims"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// TestAToyIsAskedFor: what the toy's client is told to install is what the run asked for.
func TestAToyIsAskedFor(t *testing.T) {
	got := claims.Clients(all.Asked).Read([]string{"sh", "-c", "cd x && toy get -q good@1.0.0 other"})
	want := map[pkgref.Ref]string{{Ecosystem: pkgref.Toy, Name: "good"}: "1.0.0"}
	if !maps.Equal(got, want) {
		t.Errorf("it asks for %v", got)
	}
	if !claims.Meets("1.0.0", pkgref.Ref{Ecosystem: pkgref.Toy, Name: "good", Version: "1.0.0"}) {
		t.Error("the release does not meet what was asked for")
	}
}
