package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnit: systemd takes the unit, and what keeps sandboxes alive over a restart
// of the service is in it.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "packaging", "systemd", "cofferdam.service"))
	if err != nil {
		t.Fatal(err)
	}
	set, section := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch key, value, found := strings.Cut(line, "="); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			section = strings.Trim(line, "[]")
		case !found || set[section+"."+key] != "":
			t.Errorf("%q is no setting, or stands there twice", line)
		default:
			set[section+"."+key] = value
		}
	}
	for key, want := range map[string]string{
		"Service.Type": "notify", "Service.KillMode": "process", "Service.Delegate": "yes", "Service.Restart": "always",
		"Service.KillSignal": "SIGTERM", "Service.LimitNOFILE": "1048576", "Service.RuntimeDirectoryPreserve": "yes",
		"Service.ExecStart": "/usr/local/bin/cofferdam serve", "Install.WantedBy": "multi-user.target",
	} {
		if set[key] != want {
			t.Errorf("%s is %q, not %q", key, set[key], want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here; the settings were looked at")
	}
	// The program need not be installed here.
	unit := filepath.Join(t.TempDir(), "cofferdam.service")
	if err := os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/cofferdam", "/bin/true")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
