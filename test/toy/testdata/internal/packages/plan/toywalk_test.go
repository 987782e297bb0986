package plan_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
)

// TestAToyIsPlanned: an install of the toy's client is rewritten, what it leaves is read,
// and the choices are those that a plan weighs.
func TestAToyIsPlanned(t *testing.T) {
	rewrite, err := plan.Of(all.Installers(), []string{"toy", "get", "good"}, installer.Project{})
	if err != nil {
		t.Fatal(err)
	}
	lock := []byte("good 1.0.0 sha256:" + strings.Repeat("ab", 32) + "\n")
	result, err := rewrite.Resolver.Result(installer.Documents{"toy.lock": lock})
	if err != nil {
		t.Fatal(err)
	}
	choices, err := plan.Choices(result.Ecosystem, result.Choices)
	want := pkgref.Ref{Ecosystem: pkgref.Toy, Name: "good", Version: "1.0.0"}
	if err != nil || len(choices) != 1 || choices[0].Package != want {
		t.Errorf("the plan has %+v, %v", choices, err)
	}
	if got := plan.Installs(all.Installers(), []string{"sh", "-c", "toy get good"}, "/w", nil); len(got) != 1 {
		t.Errorf("a shell's text has the installs %+v", got)
	}
}
