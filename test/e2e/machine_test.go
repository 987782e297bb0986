package e2e

import (
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// machineKernel configures the installation with the kernel that scripts/deps fetched for
// machines, unless the host has its own.
func machineKernel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: machinekernel")
	}
	kernel, err := filepath.Abs(filepath.Join("..", "..", ".tools", "kernel"))
	ts.Check(err)
	if _, err := os.Stat(filepath.Join(kernel, "boot")); err != nil {
		return
	}
	ts.Check(os.WriteFile(stateFile(ts, "config.yaml"), []byte("guest_kernel: "+kernel+"\n"), 0o600))
}
