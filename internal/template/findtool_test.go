package template

import (
	"os/exec"
	"testing"
)

// useTools has programs be looked for in directories of the test's own, as PATH lists them.
func useTools(t *testing.T, path string) {
	t.Helper()
	t.Setenv("PATH", path)
	was := findTool
	findTool = onPath
	t.Cleanup(func() { findTool = was })
}

// onPath finds programs as a shell does.
func onPath(name string) string {
	found, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return found
}
