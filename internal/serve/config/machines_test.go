package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
)

// TestMachinesAreMadeWithAbsolutePaths: what is relative lies wherever somebody starts the daemon. The control: absolute.
func TestMachinesAreMadeWithAbsolutePaths(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"guest_kernel", "machine_monitor"} {
		for value, want := range map[string]bool{"kernel": false, "./x": false, "/opt/x": true} {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(key+": "+value+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Load(path); (err == nil) != want || err != nil && !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %s: %v", key, value, err)
			}
		}
	}
}
