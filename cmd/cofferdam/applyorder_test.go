package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/autorun"
)

// TestSettingsAreLookedAtFirst: a walk of a directory with many names is in no order, and more files are there than are looked at.
func TestSettingsAreLookedAtFirst(t *testing.T) {
	dir := t.TempDir()
	for i := range 1_000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("a", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(".b", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at, err := openNamed(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	root, err := at.Root()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	paths, _ := filesToLookAt(t.Context(), at, root, autorun.Files{})
	dot := func(name string) bool { return strings.HasPrefix(name, ".") }
	if first := slices.IndexFunc(paths, func(name string) bool { return !dot(name) }); len(paths) != 2_000 || first != 1_000 {
		t.Errorf("%d files, of which the first without a dot is the %dth", len(paths), first)
	}
}
