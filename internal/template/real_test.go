//go:build long

package template

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestRealDebian builds the template from this machine's mirror, twice: two
// builds give the same bytes. It needs the network and two minutes.
func TestRealDebian(t *testing.T) {
	t.Parallel()
	var digests []string
	for range 2 {
		s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{})
		made, err := s.Build(t.Context(), NameDebian, func(p Progress) { t.Log(p) })
		if err != nil {
			t.Fatal(err)
		}
		ledger, err := s.Ledger(made)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"python3", "python3-venv", "ca-certificates", "git", "bash", "curl"} {
			if !slices.ContainsFunc(ledger.System, func(p SystemPackage) bool { return p.Name == name }) {
				t.Errorf("%s is not in it", name)
			}
		}
		inVenv := func(p PythonPackage) bool {
			return p.Name == "pip" && filepath.Dir(filepath.Dir(filepath.Dir(p.Folder))) == agentHome+"/.venv"
		}
		if !slices.ContainsFunc(ledger.Python, inVenv) || len(ledger.Tools) != 1 {
			t.Errorf("python %+v, tools %+v", ledger.Python, ledger.Tools)
		}
		digests = append(digests, made.Digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two builds differ: %v", digests)
	}
}
