package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/file"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sourcetest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestConforms(t *testing.T) {
	sourcetest.Conforms(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		path := filepath.Join(t.TempDir(), "key")
		return sourcetest.Harness{
			Source: file.Path(path),
			Put: func(t *testing.T, text string) {
				t.Helper()
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			Remove: func(t *testing.T) {
				t.Helper()
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			},
			Stall: func(t *testing.T) { // a pipe in its place, that nobody writes to
				t.Helper()
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				if err := syscall.Mkfifo(path, 0o600); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// TestAFileOfOthersIsRefused: what others can read is no secret, and what they can write
// is theirs.
func TestAFileOfOthersIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("canary-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o400: "", 0o600: "", 0o640: "", 0o604: "others", 0o620: "others", 0o602: "others"} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		v, err := file.Path(path).Fetch(t.Context())
		if (err == nil) != (want == "") || !strings.Contains(fault.Sentence(err, ""), want) || err != nil && v.Reveal() != "" {
			t.Errorf("%#o: %v", mode, err)
		}
	}
	if _, err := file.Path(filepath.Dir(path)).Fetch(t.Context()); err == nil {
		t.Error("a directory is a secret")
	}
}
