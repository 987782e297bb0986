package all_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
)

// controls are the rows of the table.
var controls = []struct {
	control engine.Control
	words   string
}{
	{engine.ControlNoNetwork, "no network but the loopback"},
	{engine.ControlReadOnlyRoot, "the template is never written"},
	{engine.ControlOwnKernel, "a kernel of its own"},
	{engine.ControlNonRootUser, "commands are another user's than the agent"},
	{engine.ControlUserMapping, "mounted files keep their owner"},
	{engine.ControlMemory, "memory is bounded"},
	{engine.ControlCPU, "processors are bounded"},
	{engine.ControlPids, "processes are bounded"},
	{engine.ControlNProc, "a fork bomb keeps nobody's next command out"},
	{engine.ControlDiskCap, "disks are bounded"},
	{engine.ControlFreeze, "freezes to disk and goes on"},
	{engine.ControlSnapshot, "snapshots with memory"},
	{engine.ControlSnapshotFiles, "snapshots of files"},
}

// TestDocsSayWhatIsProved: the table of docs/engines.md is what the suite wrote down of
// each engine. COFFERDAM_UPDATE=1 writes it.
func TestDocsSayWhatIsProved(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- proved -->\n", "<!-- /proved -->"
	page := filepath.Join("..", "..", "..", "..", "docs", "engines.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table: %s%s", page, begin, end)
	}
	want := before + begin + tables(t) + end + after
	if want == string(text) {
		return
	}
	if os.Getenv("COFFERDAM_UPDATE") == "" {
		t.Fatalf("COFFERDAM_UPDATE=1 writes the table of %s:\n%s", page, tables(t))
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// tables has one for each kind of host of which something is written down.
func tables(t *testing.T) string {
	t.Helper()
	proofs := map[string]map[string]enginetest.Proof{} // by kind of host and engine
	for name := range all.Engines(all.Config{}, nil) {
		of, err := enginetest.ReadProofs(filepath.Join("..", name, enginetest.ProofFile))
		if err != nil {
			t.Fatal(err)
		}
		if len(of) == 0 {
			t.Errorf("nothing is written down of %s: run its suite with COFFERDAM_UPDATE=1", name)
		}
		for kind, proof := range of {
			if proofs[kind] == nil {
				proofs[kind] = map[string]enginetest.Proof{}
			}
			proofs[kind][name] = proof
		}
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(proofs)) {
		table(&b, kind, proofs[kind])
	}
	return b.String()
}

func table(b *strings.Builder, kind string, proofs map[string]enginetest.Proof) {
	engines := slices.Sorted(maps.Keys(proofs))
	fmt.Fprintf(b, "\nAs %s:\n\n| | `%s` |\n|---|%s\n| wall |", kind, strings.Join(engines, "` | `"), strings.Repeat("---|", len(engines)))
	for _, name := range engines {
		fmt.Fprintf(b, " %s |", proofs[name].Wall)
	}
	for _, row := range controls {
		fmt.Fprintf(b, "\n| %s |", row.words)
		for _, name := range engines {
			cell := "no"
			if slices.Contains(proofs[name].Proved, row.control) {
				cell = "proved"
			}
			fmt.Fprintf(b, " %s |", cell)
		}
	}
	b.WriteString("\n\n")
	for _, name := range engines {
		lacks := proofs[name].Lacks
		for _, control := range slices.Sorted(maps.Keys(lacks)) {
			fmt.Fprintf(b, "- `%s` has no %s: %s.\n", name, control, strings.TrimSuffix(lacks[control], "."))
		}
	}
	b.WriteString("\n")
}
