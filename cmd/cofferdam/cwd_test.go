package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestADirectoryThatIsGone: whoever is in one is told to leave it, and not that a call of the system failed.
func TestADirectoryThatIsGone(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	t.Setenv("PWD", "") // else what it says may be believed
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	_, err := currentDirectory()
	_, file := fromHere("policy.yaml")
	for _, err := range []error{err, file} {
		if !errors.Is(err, fault.ErrNotFound) || !strings.Contains(err.Error(), "change to one that is") {
			t.Errorf("it is told: %v", err)
		}
	}
}
