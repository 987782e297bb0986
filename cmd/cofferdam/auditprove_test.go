package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestAProofIsOfTheKeyThatWasGiven: with another log's key there is no proof, and nothing is
// written; with the log's own, and without one, there is (the controls).
func TestAProofIsOfTheKeyThatWasGiven(t *testing.T) {
	dir, other := logDir(t), logDir(t)
	key := func(dir string) string { return filepath.Join(dir, audit.PublicKeysName) }
	for name, c := range map[string]struct {
		key  []string
		want int
	}{
		"its own": {[]string{"--key", key(dir)}, 0}, "none": {nil, 0}, "another log's": {[]string{"--key", key(other)}, exitFailure},
	} {
		out := filepath.Join(t.TempDir(), "proof")
		got := execute(t.Context(), append([]string{"audit", "prove", "0", "--dir", dir, "-o", out}, c.key...))
		if _, err := os.Stat(out); got != c.want || (err == nil) != (c.want == 0) {
			t.Errorf("%s: exit code %d, want %d; the file: %v", name, got, c.want, err)
		}
	}
}
