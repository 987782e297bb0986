package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestGoldensOfContainers: what pip, uv, npm and go say in a container is, to the letter,
// what they say behind the default engine, and so is what is recorded of it. The scripts are
// those of testdata; each run of theirs asks for a container.
func TestGoldensOfContainers(t *testing.T) {
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1: it asks pip, uv, npm and go once more")
	}
	if os.Geteuid() != 0 {
		t.Fatal("containers take root")
	}
	root := repository(t)
	buildTemplate(t, root)
	const run, asks = "cofferdam run --policy", "cofferdam run --isolation runc --policy"
	// The first run says once what a host lacks.
	const before = "exec cofferdam run --isolation runc --template debian -- true\nstderr 'own-kernel'\n"
	dir := t.TempDir()
	for _, name := range []string{"matrix-python.txt", "long/matrix-npm.txt", "long/matrix-go.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), run) < 3 || strings.Count(string(text), "cofferdam run ") != strings.Count(string(text), run) {
			t.Fatalf("%s has runs that can't be told to be in a container", name)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(before+strings.ReplaceAll(string(text), run, asks)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup:               func(env *testscript.Env) error { return install(env, root) },
		Cmds:                commands(),
		Condition: func(cond string) (bool, error) {
			if cond == "long" { // older clients are no question of the engine
				return false, nil
			}
			return condition(cond)
		},
	})
}
