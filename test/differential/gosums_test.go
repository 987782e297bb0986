package differential

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
)

// TestSumsAreReadAsGoDoes: go writes a go.sum again when it adds a line, with what it has understood of the others. That and nothing
// else is pinned, refused, or left out.
func TestSumsAreReadAsGoDoes(t *testing.T) {
	t.Parallel()
	d, g := rollAgain(t), startGo(t)
	n := rounds(6, 1_000)
	read, refused := 0, 0
	for range n {
		dir, text := t.TempDir(), d.goSum()
		sums := filepath.Join(dir, "go.sum")
		for name, content := range map[string]string{sums: text, filepath.Join(dir, "go.mod"): "module x\n\ngo 1.16\n\nrequire example.com/added v1.0.0\n"} {
			if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		theirs := g.ask(t, dir)
		ours, err := lockfile.Parse("go.sum", []byte(text))
		if err != nil || theirs.Error != "" {
			if refused++; err == nil {
				t.Logf("go alone refuses it: %s", theirs.Error)
			}
			continue
		}
		written, err := os.ReadFile(sums)
		if err != nil || !strings.Contains(string(written), "example.com/added") {
			t.Fatalf("go has not written it again: %q, %v", written, err)
		}
		read++
		if faults := append(tellSums(ours, withoutAdded(string(written))), tellPinned(ours, string(written))...); len(faults) > 0 {
			t.Fatalf("%s\n%s", strings.Join(faults, "\n"), text)
		}
	}
	if t.Logf("%d read, %d refused", read, refused); read < n/5 {
		t.Error("INCONCLUSIVE: four of five files are refused")
	}
}

func withoutAdded(text string) string {
	return strings.Join(slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(l string) bool { return strings.HasPrefix(l, "example.com/added ") }), "")
}

// tellPinned says what is pinned and is no line of go's.
func tellPinned(lock *lockfile.Lockfile, text string) (faults []string) {
	for name, pins := range lock.Pins {
		for _, p := range pins {
			for _, hash := range p.Digests {
				if !strings.Contains(text, name+" "+p.Version+" "+hash+"\n") {
					faults = append(faults, fmt.Sprintf("%s %s (line %d) is pinned to %s, which go has not", name, p.Version, p.Line, hash))
				}
			}
			for _, hash := range p.Metadata {
				if !strings.Contains(text, name+" "+p.Version+"/go.mod "+hash+"\n") {
					faults = append(faults, fmt.Sprintf("%s %s/go.mod (line %d) is pinned to %s, which go has not", name, p.Version, p.Line, hash))
				}
			}
		}
	}
	return faults
}
