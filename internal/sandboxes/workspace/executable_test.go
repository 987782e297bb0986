package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/workspace"
)

// TestADifferenceSaysWhatMayBeExecuted: a person answers on what the difference shows, and a program is more than
// its lines.
func TestADifferenceSaysWhatMayBeExecuted(t *testing.T) {
	dir, w := project(t)
	if err := errors.Join(
		os.Chmod(filepath.Join(w.Dir(), "src/b.py"), 0o755),                                                                                // control: the mode alone
		os.WriteFile(filepath.Join(w.Dir(), "a.txt"), []byte("one\ntwo\nFOUR\n"), 0o644), os.Chmod(filepath.Join(w.Dir(), "a.txt"), 0o755), // both
		os.WriteFile(filepath.Join(w.Dir(), "new"), []byte("#!/bin/sh\n"), 0o755), // a new one
	); err != nil {
		t.Fatal(err)
	}
	all, err := w.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range all {
		if c.Kind != workspace.File || !c.Executable {
			continue
		}
		seen++
		text, err := w.Diff(c)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, "executable") {
			t.Errorf("%s becomes a program, and the difference does not say so:\n%s", c.Path, text)
		}
	}
	if seen != 3 {
		t.Fatalf("INCONCLUSIVE: %d programs among %+v", seen, all)
	}
	if _, errs := w.Apply(t.Context(), all, false); len(errs) > 0 {
		t.Fatal(errs)
	}
	if info, err := os.Stat(filepath.Join(dir, "a.txt")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("INCONCLUSIVE: it was not brought over as a program: %v %v", info, err)
	}
}
