package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// agentVariable names the guest agent's program where the tests run without the sources
// that it is built from.
const agentVariable = "COFFERDAM_TEST_AGENT"

// LayAgent puts the guest agent's program into a directory, which it makes: built from the
// repository at root, or the one that the environment names.
func LayAgent(t *testing.T, root, dir string) {
	t.Helper()
	target := filepath.Join(dir, "cofferdam-guest")
	if built := os.Getenv(agentVariable); built != "" {
		program, err := os.ReadFile(built)
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			err = os.WriteFile(target, program, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", target, "./cmd/cofferdam-guest")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}
