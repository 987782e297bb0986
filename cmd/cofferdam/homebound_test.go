package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAHomeIsBoundWhateverItsFilesAreCalled: what a run keeps in a home counts against its disk while it is open, also if it
// has no name any more. The controls: a file with a name, and one without that is small.
func TestAHomeIsBoundWhateverItsFilesAreCalled(t *testing.T) {
	w := newWorkplace(t)
	if err := os.Chmod(filepath.Dir(filepath.Dir(w.runtime)), 0o755); err != nil { // runc's users pass by
		t.Fatal(err)
	}
	w.write("policy.yaml", "name: small\ndefaults:\n  max_disk_mb: 64\nnetwork_presets: [ anthropic, claude-account ]\n")
	for name, c := range map[string]struct {
		script string
		ended  bool
	}{
		"control: with a name":      {"dd if=/dev/zero of=$HOME/.claude/big bs=1M count=200 2>/dev/null; sleep 60", true},
		"control: small, without":   {"exec 3> $HOME/.claude/small; rm $HOME/.claude/small; dd if=/dev/zero bs=1M count=20 >&3 2>/dev/null; sleep 12", false},
		"without":                   {"exec 3> $HOME/.claude/big; rm $HOME/.claude/big; dd if=/dev/zero bs=1M count=200 >&3 2>/dev/null; sleep 60", true},
		"without, held by a reader": {"echo > $HOME/.claude/big; exec 4< $HOME/.claude/big; dd if=/dev/zero of=$HOME/.claude/big bs=1M count=200 2>/dev/null; rm $HOME/.claude/big; sleep 60", true},
	} {
		for _, engine := range []string{"gvisor", "runc"} {
			t.Run(name+" under "+engine, func(t *testing.T) {
				t.Parallel()
				home := "desk" + strings.Map(func(r rune) rune {
					if r >= 'a' && r <= 'z' {
						return r
					}
					return -1
				}, name+engine)
				out, err := w.run(c.script, "--engine", engine, "--policy", "policy.yaml", "--agent", "claude", "--home", home)
				if ended := err != nil && strings.Contains(out, "and its disk is 64 MiB"); ended != c.ended || !c.ended && err != nil {
					t.Errorf("ended: %t, want %t: %v: %s", ended, c.ended, err, out)
				}
			})
		}
	}
}
