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
	dir := filepath.Join(t.TempDir(), "image")
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
		_, ok := c.remembered(dir, now)
		return ok
	}
	until := time.NewTimer(2 * fresh)
	<-until.C
	for range 2 {
		if !known() {
			t.Error("an old image is read again each time")
		}
	}
	if err := os.Chmod(path, 0o400); err != nil { // a change without a byte
		t.Fatal(err)
	}
	now, err := stamps(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.remembered(dir, now); ok {
		t.Error("a change is not noticed")
	}
	if old(now) {
		t.Error("a file that was changed just now counts as old")
	}
}
