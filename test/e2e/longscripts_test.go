package e2e

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestLongScripts runs testdata/long/*.txt: installs of hundreds of megabytes, and
// variations of what testdata/*.txt has.
func TestLongScripts(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for them: they fetch some hundred megabytes")
	}
	root := repository(t)
	buildTemplate(t, root)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/long",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return install(env, root) },
		Cmds:                commands(),
		Condition:           condition,
	})
}
