package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
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
	for _, args := range readersOfCopies() {
		for from, want := range map[string]int{dir: 0, forged: exitFailure} {
			if got := readCopy(t, args, from); got != want {
				t.Errorf("%s of the copy that is forged: %v: exit code %d, want %d", args, from == forged, got, want)
			}
		}
	}
}

func readersOfCopies() []string {
	return []string{
		"query --package p-default", "query", "query --json", "report unaccounted", "report unaccounted --fail-if-any",
		"report busy-runs --json", "report approvals --csv", "export --out OUT",
	}
}

// readCopy returns the exit code of a command that reads a copy.
func readCopy(t *testing.T, args, from string, flags ...string) int {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(args, "OUT", filepath.Join(t.TempDir(), "out")))
	return execute(t.Context(), slices.Concat([]string{"audit"}, words, []string{"--log", from}, flags))
}

// TestACopyThatIsNotWhole is refused unless somebody says that they want to be told of what is
// there: records that no checkpoint covers, which anybody can have written, and records of
// which only the hashes are there, which anybody can have hidden.
func TestACopyThatIsNotWhole(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"a record added past the last checkpoint": func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, "000000000000.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(text, []byte("\n"))
			last := lines[len(lines)-2]
			number := fmt.Sprintf(`{"seq":%d`, len(lines)-1)
			head, _, _ := bytes.Cut(last, []byte(","))
			if err := os.WriteFile(path, slices.Concat(text, []byte(number), last[len(head):]), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"records hidden as if they were elsewhere": func(t *testing.T, dir string) {
			t.Helper()
			path := filepath.Join(dir, "000000000000.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var leaves []byte
			for line := range bytes.Lines(text) {
				leaf := tlog.RecordHash(bytes.TrimSuffix(line, []byte("\n")))
				leaves = append(leaves, leaf[:]...)
			}
			if err := errors.Join(os.WriteFile(filepath.Join(dir, "000000000000.leaves"), leaves, 0o600), os.Remove(path)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		dir := logDir(t)
		if got := readCopy(t, "query", dir); got != 0 { // the control
			t.Fatalf("%s: before: exit code %d", name, got)
		}
		change(t, dir)
		for _, args := range readersOfCopies() {
			if got := readCopy(t, args, dir); got != exitFailure {
				t.Errorf("%s: %s: exit code %d", name, args, got)
			}
			if got := readCopy(t, args, dir, "--partial"); got != 0 {
				t.Errorf("%s: %s --partial: exit code %d", name, args, got)
			}
		}
	}
}

// TestACopyOfAnotherKey: a log that somebody wrote and signed anew is sound by its own key, and
// not by the auditor's.
func TestACopyOfAnotherKey(t *testing.T) {
	dir, anew := logDir(t), logDir(t)
	key := filepath.Join(dir, audit.PublicKeysName)
	for _, args := range readersOfCopies() {
		if got := readCopy(t, args, dir, "--key", key, "--checkpoint", filepath.Join(dir, "checkpoints")); got != 0 {
			t.Errorf("%s: exit code %d", args, got)
		}
		if got := readCopy(t, args, anew, "--key", key); got != exitFailure {
			t.Errorf("%s of the other: exit code %d", args, got)
		}
	}
	if got := execute(t.Context(), []string{"audit", "query", "--key", key}); got != exitUsage {
		t.Errorf("a key without a copy: exit code %d", got)
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
