package image

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCheckerRemembers: what is old enough for a change to show, and nothing
// else.
func TestCheckerRemembers(t *testing.T) {
	place := filepath.Join(t.TempDir(), "draft")
	dir := filepath.Join(place, "image")
	if err := Make(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "pages")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	var c Checker
	if err := c.Seal(dir, "sb1"); err != nil {
		t.Fatal(err)
	}
	known := func() bool {
		t.Helper()
		if _, err := c.Verify(dir); err != nil {
			t.Fatal(err)
		}
		now, err := stamps(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, ok := c.remembered(now["."], now)
		return ok
	}
	until := time.NewTimer(2 * fresh)
	<-until.C
	for range 2 {
		if !known() {
			t.Error("an old image is read again each time")
		}
	}
	// A snapshot is published by a new name of the directory that the image is in.
	if err := os.Rename(place, place+"-published"); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(place+"-published", "image")
	path = filepath.Join(dir, "pages")
	now, err := stamps(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.remembered(now["."], now); !ok {
		t.Error("an image is read again at its place")
	}
	if err := os.Chmod(path, 0o400); err != nil { // a change without a byte
		t.Fatal(err)
	}
	if now, err = stamps(dir); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.remembered(now["."], now); ok {
		t.Error("a change is not noticed")
	}
	if areOld(now) {
		t.Error("a file that was changed just now counts as old")
	}
}
