package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingIsToldOfAForgedCopy: a copy of the log in which one outcome was changed, at the
// same length, is refused by whatever reads a copy; the copy as it was is the control.
func TestNothingIsToldOfAForgedCopy(t *testing.T) {
	dir := logDir(t)
	forged := t.TempDir()
	if err := os.CopyFS(forged, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if n := forge(t, forged); n != 1 {
		t.Fatalf("%d records were changed", n)
	}
	for _, args := range []string{
		"query --package p-default", "query", "query --json", "report unaccounted", "report unaccounted --fail-if-any",
		"report busy-runs --json", "report approvals --csv", "export --out OUT",
	} {
		for from, want := range map[string]int{dir: 0, forged: exitFailure} {
			words := strings.Fields(strings.ReplaceAll(args, "OUT", filepath.Join(t.TempDir(), "out")))
			if got := execute(t.Context(), append(append([]string{"audit"}, words...), "--log", from)); got != want {
				t.Errorf("%s of the copy that is forged: %v: exit code %d, want %d", args, from == forged, got, want)
			}
		}
	}
}

// forge changes the outcome of one record of a log's files.
func forge(t *testing.T, dir string) (changed int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || changed > 0 {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after := bytes.Replace(text, []byte(`"outcome":"installed"`), []byte(`"outcome":"exceeded" `), 1)
		if bytes.Equal(text, after) {
			return nil
		}
		changed++
		return os.WriteFile(path, after, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
