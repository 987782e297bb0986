package config

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOpenLog appends to a small log, and sets a large one aside.
func TestOpenLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "daemon.log")
	write := func(text string) {
		t.Helper()
		f, err := OpenLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("one ")
	write("two")
	if got, err := os.ReadFile(path); err != nil || string(got) != "one two" {
		t.Errorf("%q %v", got, err)
	}
	if err := os.Truncate(path, logRoom+1); err != nil {
		t.Fatal(err)
	}
	write("new")
	if got, err := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("%q %v", got, err)
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != logRoom+1 {
		t.Errorf("the old one: %v", err)
	}
}
