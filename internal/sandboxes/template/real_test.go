//go:build long

package template

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// ownClients fetches with this machine's pip and npm; the gateway's part is
// tried elsewhere.
type ownClients struct{}

func (ownClients) Fetch(ctx context.Context, _ string, wanted []Artifact, dir string, _ func(Progress)) ([]Origin, error) {
	var origins []Origin
	for _, a := range wanted {
		argv := []string{"npm", "pack", "--silent", a.Name + "@" + a.Version}
		if a.Ecosystem == pkgref.Python {
			// Of the file's name the last part is the platform.
			tags := strings.Split(strings.TrimSuffix(a.File, ".whl"), "-")
			platform, _, _ := strings.Cut(tags[len(tags)-1], ".")
			argv = []string{
				"python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
				"--platform=" + platform, a.Name + "==" + a.Version,
			}
		}
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "%v: %s", argv, out)
		}
		raw, err := os.ReadFile(filepath.Join(dir, a.File))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(raw)
		origins = append(origins, Origin{URL: "https://files.example/" + a.File, SHA256: hex.EncodeToString(sum[:]), Run: "test"})
	}
	return origins, nil
}

// TestRealDebian builds the template from this machine's mirror, twice: two
// builds give the same bytes. It needs the network and five minutes.
func TestRealDebian(t *testing.T) {
	t.Parallel()
	var digests []string
	for range 2 {
		s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{Fetcher: ownClients{}})
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
		if !slices.ContainsFunc(ledger.Python, inVenv) || len(ledger.Tools) != len(pinned(runtime.GOARCH)) {
			t.Errorf("python %+v, tools %+v", ledger.Python, ledger.Tools)
		}
		digests = append(digests, made.Digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two builds differ: %v", digests)
	}
}
