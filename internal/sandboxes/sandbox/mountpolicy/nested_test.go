package mountpolicy

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestMountsInMounts: the place of an inner mount must be there already.
func TestMountsInMounts(t *testing.T) {
	outer, inner := t.TempDir(), t.TempDir()
	file := filepath.Join(inner, "file")
	if err := os.MkdirAll(filepath.Join(outer, "src", "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{file, filepath.Join(outer, "src", "file")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("src", filepath.Join(outer, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		source, destination string
		fine                bool
	}{
		{inner, "/w/src", true},
		{inner, "/w/src/deep", true},
		{file, "/w/src/file", true},
		{inner, "/w2", true},
		{inner, "/w/new", false},
		{inner, "/w/src/new", false},
		{file, "/w/src/new", false},
		{inner, "/w/src/file", false},
		{file, "/w/src/deep", false},
		{inner, "/w/link/deep", false},
		{inner, "/w/link", false},
	} {
		mounts := opened(t, Mount{Source: tt.source, Destination: tt.destination}, Mount{Source: outer, Destination: "/w"})
		err := checkNested(mounts)
		if tt.fine && err != nil || !tt.fine && !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s at %s in a mount: %v", tt.source, tt.destination, err)
		}
	}
}
