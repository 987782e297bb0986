package template

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAShellSaysWhatIsAbsent: for each program of the list, and one that nobody knows; a shell that is no bash reads the file
// and goes on as it did.
func TestAShellSaysWhatIsAbsent(t *testing.T) {
	t.Parallel()
	profile := filepath.Join(t.TempDir(), "absent.sh")
	if err := os.WriteFile(profile, []byte(absentProfile()), 0o600); err != nil {
		t.Fatal(err)
	}
	said := func(shell, program string) (string, int) {
		t.Helper()
		var text bytes.Buffer
		cmd := exec.CommandContext(t.Context(), shell, "-c", `PATH=/nowhere; . "$0"; "$1" --version`, profile, program)
		cmd.Stderr = &text
		if err := cmd.Run(); err == nil {
			t.Fatalf("%s ran %s", shell, program)
		}
		return text.String(), cmd.ProcessState.ExitCode()
	}
	seen := map[string]bool{}
	for _, a := range absences() {
		for _, program := range a.programs {
			if seen[program] {
				t.Errorf("%s is told of twice", program)
			}
			seen[program] = true
			if len(Having(program)) > 0 {
				t.Errorf("a template has %s", program)
			}
			if text, code := said("/bin/bash", program); text != WhyAbsent(program)+"\n" || code != 127 {
				t.Errorf("%s: %q, %d", program, text, code)
			}
		}
	}
	if text, code := said("/bin/bash", "nobodys"); text != "bash: nobodys: command not found\n" || code != 127 || WhyAbsent("nobodys") != "" {
		t.Errorf("%q, %d", text, code)
	}
	if text, code := said("/bin/dash", "docker"); !strings.Contains(text, "not found") || strings.Contains(text, "sandbox") || code != 127 {
		t.Errorf("dash: %q, %d", text, code)
	}
}
