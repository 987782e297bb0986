package template

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestWheels: each distribution and architecture has the same packages, each once, pinned.
func TestWheels(t *testing.T) {
	t.Parallel()
	var names []string
	for codename, python := range pythons() {
		for _, arch := range []string{"amd64", "arm64"} {
			pins, err := wheelsFor(codename, arch)
			if err != nil {
				t.Fatal(err)
			}
			var these []string
			for _, p := range pins {
				digest, ok := strings.CutPrefix(p.Digest, "sha256-")
				if raw, err := hex.DecodeString(digest); !ok || err != nil || len(raw) != 32 || !strings.HasSuffix(p.File, ".whl") {
					t.Errorf("%s has the digest %q", p.File, p.Digest)
				}
				if to, ok := p.place("numpy/core.py"); !ok || to != "usr/local/lib/python"+python+"/dist-packages/numpy/core.py" {
					t.Errorf("a file goes to %q, %v", to, ok)
				}
				if to, ok := p.place("x-1.data/scripts/run"); ok {
					t.Errorf("a script goes to %q", to)
				}
				these = append(these, p.Name)
			}
			if !slices.IsSorted(these) || len(slices.Compact(slices.Clone(these))) != len(these) || !slices.Contains(these, "ipykernel") {
				t.Errorf("%s on %s has %v", codename, arch, these)
			}
			if names == nil {
				names = these
			}
			if !slices.Equal(names, these) {
				t.Errorf("%s on %s has %v, and others have %v", codename, arch, these, names)
			}
		}
	}
	for _, other := range [][2]string{{"buster", "amd64"}, {"bookworm", "riscv64"}, {"", ""}} {
		if _, err := wheelsFor(other[0], other[1]); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "bookworm, noble, trixie") {
			t.Errorf("%v: %v", other, err)
		}
	}
}
