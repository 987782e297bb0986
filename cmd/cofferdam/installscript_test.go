package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstallSaysHowToServe: an installation of root's ends with how to have the daemon as a service, by a name that systemd
// knows; the unit runs the program that was installed; a removal leaves no file.
func TestInstallSaysHowToServe(t *testing.T) {
	t.Parallel()
	bin, prefix := t.TempDir(), filepath.Join(t.TempDir(), "prefix")
	for _, name := range []string{"cofferdam", "runsc"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho a program\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join("..", "..", "scripts", "install")}, args...)...)
		cmd.Env = append(os.Environ(), "PREFIX="+prefix, "DESTDIR=", "BIN="+bin, "HERE=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	unit := filepath.Join(prefix, "lib/systemd/system/cofferdam.service")
	if said, hint := script(), "systemctl enable --now "+unit+"\n"; strings.HasSuffix(said, hint) != (os.Geteuid() == 0) {
		t.Errorf("it ends with %q", said)
	}
	text, err := os.ReadFile(unit)
	if err != nil || !strings.Contains(string(text), "\nExecStart="+prefix+"/bin/cofferdam serve\n") || !strings.Contains(string(text), "\nExecReload="+prefix+"/bin/cofferdam reload\n") {
		t.Errorf("the unit: %v\n%s", err, text)
	}
	script("remove")
	if err := filepath.WalkDir(prefix, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
