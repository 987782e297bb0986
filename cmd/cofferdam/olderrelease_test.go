package main

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
)

// TestAnOlderReleaseIsNamedAtTheEnd of a run, with what is newer and why that was withheld, however well the install went.
func TestAnOlderReleaseIsNamedAtTheEnd(t *testing.T) {
	t.Parallel()
	served := api.Package{Ecosystem: "node", Name: "tool", Version: "2.1.112"}
	s := api.RunSummary{
		Run: "r1", Served: []api.Package{served}, Installed: []api.Package{served},
		Withheld: []api.Package{{Ecosystem: "node", Name: "tool", Version: "2.1.113 .. 2.1.332", Rule: "packages.install_scripts", Reason: "this version of tool runs a script when it is installed"}},
	}
	said := strings.Join(summaryLines(s, 0), "\n")
	for _, want := range []string{"cofferdam: run r1: 1 installed, 1 withheld", "installed  node tool  2.1.112", "withheld   node tool  2.1.113 .. 2.1.332  this version of tool runs a script when it is installed [packages.install_scripts]"} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %q:\n%s", want, said)
		}
	}
}
