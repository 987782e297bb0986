package program_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/program"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// TestNoModuleOfASandboxIsLoaded: a program that prints a secret has the environment of the
// shell that started the daemon. Variables whose names end in PATH have no directory in it where a sandbox may
// write; the same has to hold for the others by which interpreters find what they load. The control is
// PYTHONPATH.
func TestNoModuleOfASandboxIsLoaded(t *testing.T) {
	project, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := hostpath.Resolve(project, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	lib := filepath.Join(project, "lib")
	if err := os.Mkdir(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	host := t.TempDir()
	for name, c := range map[string]struct{ program, variable, value, file, text, own, script string }{
		"PYTHONPATH":   {"python3", "PYTHONPATH", lib, "base64.py", "open('RAN','w').close()\n", "print.py", "import base64\nprint('s3cret-value')\n"},
		"PERL5LIB":     {"perl", "PERL5LIB", lib, "strict.pm", "package strict; open(F,'>','RAN'); close F; 1;\n", "print.pl", "use strict; print \"s3cret-value\\n\";\n"},
		"BASH_ENV":     {"bash", "BASH_ENV", filepath.Join(lib, "env.sh"), "env.sh", ": > RAN\n", "print.sh", "echo s3cret-value\n"},
		"NODE_OPTIONS": {"node", "NODE_OPTIONS", "--require " + filepath.Join(lib, "hook.js"), "hook.js", "require('fs').writeFileSync('RAN','')\n", "print.js", "console.log('s3cret-value')\n"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := exec.LookPath(c.program)
			if err != nil {
				t.Skip("needs " + c.program)
			}
			if at, err = filepath.EvalSymlinks(at); err != nil {
				t.Fatal(err)
			}
			ran, script := filepath.Join(host, name), filepath.Join(host, c.own)
			text := []byte(strings.ReplaceAll(c.text, "RAN", ran))

			for file, of := range map[string][]byte{filepath.Join(lib, c.file): text, script: []byte(c.script)} {
				if err := os.WriteFile(file, of, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv(c.variable, c.value)
			command := &program.Command{Argv: []string{at, script}}
			command.Guard(func() []hostpath.Tree { return []hostpath.Tree{{Path: p.Name, ID: p.ID}} })
			value, err := command.Fetch(t.Context())
			if _, there := os.Stat(ran); there == nil {
				t.Errorf("the daemon's program loaded what the sandbox wrote (the secret: %v, %v)", value.Reveal() != "", err)
			}
		})
	}
}
