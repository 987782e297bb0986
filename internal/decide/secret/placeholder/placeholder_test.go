package placeholder_test

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/placeholder"
)

func TestPlaceholders(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range placeholder.Forms() {
		shape := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
		if f.Hex {
			shape = regexp.MustCompile(`^` + f.Prefix + `[0-9a-f]+$`)
		}
		bits := math.Log2(256.0/5) * float64(f.Random) // of 256 bytes, five make the likeliest letter
		if f.Hex {
			bits = 4 * float64(f.Random)
		}
		if bits < 128 {
			t.Errorf("%s: has %.0f random bits", f.Name, bits)
		}
		for range 20 {
			p := f.New()
			if !strings.HasPrefix(p, f.Prefix) || !strings.HasSuffix(p, f.Suffix) || len(p) != len(f.Prefix)+f.Random+len(f.Suffix) || !shape.MatchString(p) {
				t.Errorf("%s: %q", f.Name, p)
			}
			if seen[p] {
				t.Errorf("%s: %q twice", f.Name, p)
			}
			seen[p] = true
		}
	}
	if f, _ := placeholder.Find("anthropic"); len(f.Suffix) != 20 || len(f.New()) != 108 {
		t.Errorf("Claude Code would not know this again: %+v", f)
	}
	for name, want := range map[string]string{"openai": "openai", "": placeholder.Plain, "no such": ""} {
		if f, found := placeholder.Find(name); f.Name != want || found != (want != "") {
			t.Errorf("%q: %+v", name, f)
		}
	}
}
