package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProgramsThatEndedRunsLeft: the daemon was started in a shell with a project's environment
// first on its PATH. A run that may write to the project leaves a program there, and ends. A later run, which
// may write nowhere, uses a secret whose command is a system's script that calls a helper by its name. The host must not run what the first one left. The
// control: while the first run lives, it does not (program.TestPathOfTheDaemon and the like); here, that the second run got as far as its secret.
func TestProgramsThatEndedRunsLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("makes sandboxes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("makes sandboxes as root")
	}
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "cofferdam"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatal("needs make build")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin, ran, asked, state := filepath.Join(top, "project", ".venv", "bin"), filepath.Join(top, "ran"), filepath.Join(top, "asked"), filepath.Join(top, "state")
	laidFiles(t, top, 0o700, map[string]string{"own/print": "#!/bin/bash\n: > " + asked + "\necho cy1zZWNyZXQtdmFsdWUtMTIzNA== | base64 -d; echo\n"})
	laidFiles(t, top, 0o600, map[string]string{
		"state/config.yaml": "idle_timeout: 10m\nsecrets: [ { name: bot, hosts: [api.example], header: x-key, command: [" + top + "/own/print] } ]\n",
		"own/policy.yaml":   "name: p\nnetwork_allowlist: [ { host: api.example, methods: [GET], paths: [\"/**\"] } ]\ncredentials: { inject: [ { host: api.example, secret: bot, env: BOT } ] }\n",
	})
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	cofferdam := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = filepath.Join(top, "project")
		for _, variable := range os.Environ() {
			if !strings.HasPrefix(variable, "PATH=") {
				cmd.Env = append(cmd.Env, variable)
			}
		}
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "COFFERDAM_STATE="+state, "COFFERDAM_RUNTIME="+filepath.Join(top, "run"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = cofferdam("stop", "--force") })
	if out, err := cofferdam("run", "--template", "host", "--mount", ".:/w:rw", "--", "sh", "-c",
		`printf '#!/bin/sh\nid > `+ran+`\nexec /usr/bin/base64 "$@"\n' > .venv/bin/base64; chmod 755 .venv/bin/base64`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := cofferdam("run", "--template", "host", "--policy", filepath.Join(top, "own", "policy.yaml"), "--", "python3", "-c",
		"import os,ssl,urllib.request as u\ntry: u.urlopen(u.Request('https://api.example/',headers={'x-key':os.environ['BOT']}),timeout=20,context=ssl._create_unverified_context())\nexcept Exception as e: print(e)")
	if _, is := os.Stat(asked); is != nil {
		t.Fatalf("the control: the secret was not asked for: %v: %s", err, out)
	}
	if id, is := os.ReadFile(ran); is == nil {
		t.Errorf("the host ran what the ended run had left: %s", id)
	}
}
