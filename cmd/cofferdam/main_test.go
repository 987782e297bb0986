package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cofferdam-dev/cofferdam/client"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"cofferdam": func() {
			if len(os.Args) > 1 && os.Args[1] == "serve" && !slices.Contains(os.Args, "--check") {
				serveStub()
				return
			}
			main()
		},
	})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("COFFERDAM_UPDATE") != "",
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			socket := own(env.Setenv, env.WorkDir)
			env.Defer(func() {
				// No daemon is the usual case: most scripts need none.
				_ = client.New(socket).Shutdown(context.Background(), true)
			})
			return nil
		},
	})
}

// exits is a script's `exits CODE COMMAND...`: exec with an exact exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("the exit code is %d, not %s", code, args[0])
	}
}

// own gives a test an installation of its own and returns the daemon's socket.
func own(set func(key, value string), dir string) string {
	set("COFFERDAM_STATE", filepath.Join(dir, "state"))
	set("COFFERDAM_RUNTIME", filepath.Join(dir, "run"))
	return filepath.Join(dir, "run", "daemon.sock")
}
