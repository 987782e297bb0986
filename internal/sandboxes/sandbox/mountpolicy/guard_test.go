package mountpolicy

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// opened are mounts whose sources are open until the test's end.
func opened(t *testing.T, asked ...Mount) (all []Checked) {
	t.Helper()
	for _, m := range asked {
		c, err := Rules{}.Check(m)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		all = append(all, c)
	}
	return all
}

func TestGuardCoversThePolicy(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "conf")
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	inRoot, inDeep := filepath.Join(dir, "p.yaml"), filepath.Join(deep, "p.yaml")
	for _, f := range []string{inRoot, inDeep} {
		if err := os.WriteFile(f, []byte("name: x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rw := opened(t, Mount{Source: dir, Destination: "/workspace", ReadWrite: true})
	over, err := guardFiles(t.Context(), rw, []string{inRoot})
	if err != nil || len(over) != 1 || !over[0].ReadOnly || over[0].Destination != "/workspace/p.yaml" || over[0].Source != inRoot {
		t.Fatalf("got %+v, %v; want one read-only mount over the policy", over, err)
	}
	if _, err := guardFiles(t.Context(), rw, []string{inDeep}); !errors.Is(err, fault.ErrInvalid) {
		t.Fatalf("a policy in a subdirectory of a read-write mount: got %v, want a refusal", err)
	}
	if over, err := guardFiles(t.Context(), nil, []string{filepath.Join(dir, "nothing")}); err != nil || len(over) != 0 {
		t.Fatalf("without mounts no file is looked at, got %+v, %v", over, err)
	}
	ro := opened(t, Mount{Source: dir, Destination: "/workspace"})
	if over, err := guardFiles(t.Context(), ro, []string{inDeep}); err != nil || len(over) != 0 {
		t.Fatalf("under a read-only mount nothing is needed, got %+v, %v", over, err)
	}
}

// A link under a read-write mount could be replaced by the agent, wherever it
// leads; one elsewhere can't.
func TestGuardRefusesLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	policy := filepath.Join(outside, "p.yaml")
	if err := os.WriteFile(policy, []byte("name: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(target, at string) string {
		if err := os.Symlink(target, at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	toFile := link(policy, filepath.Join(dir, "link.yaml"))
	toFolder := link(outside, filepath.Join(dir, "conf"))
	toLink := link(toFile, filepath.Join(outside, "again.yaml"))
	loop := link("loop", filepath.Join(outside, "loop"))
	rw := opened(t, Mount{Source: dir, Destination: "/workspace", ReadWrite: true})
	for _, file := range []string{toFile, filepath.Join(toFolder, "p.yaml"), toLink, loop} {
		if over, err := guardFiles(t.Context(), rw, []string{file}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: got %v, %v, want a refusal", file, over, err)
		}
	}
	elsewhere := link(policy, filepath.Join(outside, "fine.yaml"))
	if over, err := guardFiles(t.Context(), rw, []string{policy, elsewhere}); err != nil || len(over) != 0 {
		t.Errorf("a policy outside of the mount: got %v, %v", over, err)
	}
}

func TestIgnoreFilesAreGuarded(t *testing.T) {
	dir := t.TempDir()
	mounts := opened(t, Mount{Source: dir, Destination: "/w", ReadWrite: true})
	holding := func() [][]*ignoreFile {
		files, err := Rules{}.ignoreFiles(t.Context(), mounts[0].path, NewComparing())
		if err != nil {
			t.Fatal(err)
		}
		return [][]*ignoreFile{files}
	}
	if files := guarded(nil, holding()); len(files) != 0 {
		t.Errorf("no ignore file, but %v are guarded", files)
	}
	ignore := filepath.Join(dir, IgnoreFile)
	if err := os.WriteFile(ignore, []byte("*.key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	over, err := guardFiles(t.Context(), mounts, guarded(nil, holding()))
	if err != nil || len(over) != 1 || over[0].Source != ignore || over[0].Destination != "/w/"+IgnoreFile || !over[0].ReadOnly {
		t.Errorf("got %+v, %v; want one read-only mount over the ignore file", over, err)
	}
}
