package discover

import (
	"os/exec"
	"strconv"
	"testing"
)

// commandIn is how pip would be asked without care.
func commandIn(t *testing.T, dir, python string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, "-c", "import pip")
	cmd.Dir = dir
	return cmd
}

func quote(s string) string { return strconv.Quote(s) }
