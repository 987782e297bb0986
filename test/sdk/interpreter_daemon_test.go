package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestInterpreter: the code interpreter's own SDKs, with real kernels in real sandboxes of the
// template code-interpreter, which is built if it is not there. It takes minutes.
func TestInterpreter(t *testing.T) {
	if !long() {
		t.Skip("set COFFERDAM_LONG=1 for it")
	}
	buildTemplate(t, "code-interpreter")
	d := startDaemonOf(t, "code-interpreter", map[string]string{"cells": cellsPolicy, "research": researchPolicy(t), "scanned": scannedPolicy, "waits": policiesOfTest()["ask"]})
	t.Run("python", func(t *testing.T) {
		run(t, d.env, 18, pythonOf(t, "interpreter", "e2b-code-interpreter"), "interpreter.py")
	})
	t.Run("javascript", func(t *testing.T) {
		run(t, append(d.env, "SDK_DIR="+interpreterJavaScript(t)), 6, "node", "interpreter.mjs")
	})
	t.Run("smolagents", func(t *testing.T) {
		run(t, append(d.env, "E2B_VALIDATE_API_KEY=false"), 1, pythonOf(t, "smolagents-e2b", "smolagents[e2b]"), "smolexecutor.py")
	})
	t.Run("openai-agents", func(t *testing.T) {
		run(t, d.env, 2, pythonOf(t, "openai-agents-interpreter", "e2b-code-interpreter", "openai-agents"), "openaiscript.py")
	})
	d.leavesNothing(t, "approval")
}

// cellsPolicy allows one package, whose wheel nothing requires.
const cellsPolicy = `
name: cells
packages: { default: deny }
allowed_packages:
  python:
    - name: iniconfig
`

// scannedPolicy redacts what commands and cells write.
const scannedPolicy = `
name: scanned
packages: { default: deny }
credentials: { secret_scanning: { output: redact, pii: redact } }
`

// researchPolicy is the toolkit's example document with a rule on findings behind its own.
func researchPolicy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "research-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + `
  - name: no-hidden-imports
    condition: { field: findings, operator: matches, value: "\\b(import|obfuscation):" }
    action: deny
    message: "no hidden imports"
`
}

// buildTemplate builds one beside those that the tests share, unless it is there.
func buildTemplate(t *testing.T, name string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	bin := os.Getenv("COFFERDAM_BIN")
	if bin == "" {
		bin = filepath.Join(root, "bin")
	}
	runtime, err := os.MkdirTemp("", "cft") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtime)
	for _, args := range [][]string{{"template", "build", "--if-needed", name}, {"stop"}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "cofferdam"), args...)
		cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+filepath.Join(root, ".cofferdam"), "COFFERDAM_RUNTIME="+runtime)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cofferdam %v: %v\n%s", args, err, out)
		}
	}
}

func interpreterJavaScript(t *testing.T) string {
	t.Helper()
	node(t)
	return installed(t, "javascript", "interpreter", func(dir string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "@e2b/code-interpreter")
	})
}
