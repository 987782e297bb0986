package cache

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSweep takes what is old of the parts that are named, and never what can't be had
// again.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	files := map[string]time.Duration{
		"blobs/ab/old": 48 * time.Hour, "blobs/cd/new": time.Hour, "pages/old": 48 * time.Hour,
		"quarantine/old": 48 * time.Hour, "seen/ef/old": 48 * time.Hour, "shelves/x/old": 48 * time.Hour,
	}
	for name, age := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("four"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := Parts(dir)
	if err != nil || len(parts) != 5 || parts[0].Files != 2 || parts[0].Bytes != 8 || !parts[0].Oldest.Equal(now.Add(-48*time.Hour)) && parts[0].Oldest.IsZero() {
		t.Fatalf("%+v %v", parts, err)
	}
	swept, err := Sweep(dir, []string{PartArtifacts, PartPages, "first digests", "what was learnt"}, now.Add(-24*time.Hour))
	if err != nil || len(swept) != 2 || swept[0].Files != 1 || swept[0].Bytes != 4 || swept[1].Files != 1 {
		t.Errorf("%+v %v", swept, err)
	}
	for name, want := range map[string]bool{
		"blobs/ab/old": false, "blobs/cd/new": true, "pages/old": false, "quarantine/old": true, "seen/ef/old": true, "shelves/x/old": true,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %t", name, err == nil)
		}
	}
	if parts, err := Parts(filepath.Join(dir, "none")); err != nil || len(parts) != 5 || parts[0].Files != 0 {
		t.Errorf("no cache: %+v %v", parts, err)
	}
}
