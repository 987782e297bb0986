package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// freezeRounds is how often the frozen installs are tried with COFFERDAM_LONG.
const freezeRounds = 20

// TestFrozenInstallsHold: pip and npm are frozen in the middle of an install, the
// daemon is killed, and the install completes: many times in a row. Once is
// TestScripts' part.
func TestFrozenInstallsHold(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for it: it takes some minutes")
	}
	root := repository(t)
	buildTemplate(t, root)
	for round := range freezeRounds {
		t.Run(fmt.Sprintf("round-%d", round+1), func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files:               []string{"testdata/freeze-pip.txt", "testdata/long/freeze-npm.txt"},
				RequireExplicitExec: true,
				Setup:               func(env *testscript.Env) error { return install(env, root) },
				Cmds:                commands(),
				Condition:           condition,
			})
		})
	}
}
