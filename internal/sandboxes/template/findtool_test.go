package template

import (
	"os/exec"
	"testing"
)

// useTools returns an Options.FindTool that looks for programs in directories of the test's own, as PATH lists them.
func useTools(t *testing.T, path string) func(name string) string {
	t.Helper()
	t.Setenv("PATH", path)
	return onPath
}

// onPath finds programs as a shell does.
func onPath(name string) string {
	found, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return found
}
