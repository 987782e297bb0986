package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// ProofFile is where an engine's folder keeps what the suite has proved of it, by the kind
// of host. COFFERDAM_UPDATE=1 writes it; the table of docs/engines.md is made of it.
const ProofFile = "testdata/proved.json"

// Proof is what was proved of an engine on one kind of host.
type Proof struct {
	Wall   engine.Wall               `json:"wall"`
	Proved []engine.Control          `json:"proved"`          // sorted
	Lacks  map[engine.Control]string `json:"lacks,omitempty"` // and why
}

// ReadProofs reads a file of proofs, by the kind of host; none if it is not there.
func ReadProofs(file string) (map[string]Proof, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]Proof{}, nil
	}
	if err != nil {
		return nil, err
	}
	var all map[string]Proof
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return all, nil
}

// hostKind is what of a host decides what engines can do there.
func hostKind() string {
	user, version := "root", 1
	if os.Geteuid() != 0 {
		user = "a user"
	}
	var at unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &at); err == nil && at.Type == unix.CGROUP2_SUPER_MAGIC {
		version = 2
	}
	return fmt.Sprintf("%s, control groups %d", user, version)
}

// keepProof compares what was proved with what is written down of this kind of host, or
// writes it. An engine without a wall has nothing to prove.
func keepProof(t *testing.T, s *Subject, caps engine.Capabilities, failed bool) {
	t.Helper()
	if caps.Wall == engine.WallNone || failed {
		return
	}
	kind := hostKind()
	if s.Variant != "" {
		kind += ", " + s.Variant
	}
	got := Proof{Wall: caps.Wall, Proved: slices.Sorted(slices.Values(caps.Enforces)), Lacks: caps.Missing}
	all, err := ReadProofs(ProofFile)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("COFFERDAM_UPDATE") != "" {
		all[kind] = got
		writeProofs(t, all)
		return
	}
	known, ok := all[kind]
	if !ok {
		t.Logf("nothing is written down of %s on this kind of host (%s)", s.Engine.Name(), kind)
		return
	}
	if known.Wall != got.Wall || !slices.Equal(known.Proved, got.Proved) || !maps.Equal(known.Lacks, got.Lacks) {
		t.Errorf("%s says of %s:\n%+v\nand proved is now:\n%+v\nCOFFERDAM_UPDATE=1 writes it", ProofFile, kind, known, got)
	}
}

func writeProofs(t *testing.T, all map[string]Proof) {
	t.Helper()
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(ProofFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ProofFile, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
