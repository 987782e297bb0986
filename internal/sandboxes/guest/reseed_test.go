package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestReseeder: the library that is put together by hand is one that a real program
// loads, again and again, and that calls what it says.
func TestReseeder(t *testing.T) {
	t.Parallel()
	library := reseeder()
	if library == nil {
		if runtime.GOARCH == "amd64" {
			t.Fatal("there is none")
		}
		return
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to load it")
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"reseed.node": library, "cofferdam.cjs": hook(t, "cofferdam.cjs")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const script = `
const { reseed } = require('./cofferdam.cjs')
for (let n = 0; n < 100; n++) if (!reseed()) throw new Error('it was not loaded')
console.log(require('node:crypto').randomBytes(8).length)
`
	cmd := exec.CommandContext(t.Context(), node, "-e", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "8" {
		t.Fatalf("%v\n%s", err, out)
	}
}

func hook(t *testing.T, name string) []byte {
	t.Helper()
	text, err := hooks.ReadFile("hooks/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
