package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/inventory"
)

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"name": "a", "x": {"name": 1}, "version": "1"}`))
	f.Fuzz(func(_ *testing.T, head []byte) { parseManifest(head) })
}

// TestLinkedStores: links in the place of the node_modules of a pnpm store lead back to what is looked
// at already, and the walk does not go round.
func TestLinkedStores(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"node_modules/x", "node_modules/.pnpm/a", "node_modules/.pnpm/b", "node_modules/.pnpm/c@1/node_modules/c"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"node_modules/x/package.json", "node_modules/.pnpm/c@1/node_modules/c/package.json"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, release := range []string{"a", "b"} {
		if err := os.Symlink("../..", filepath.Join(root, "node_modules/.pnpm", release, "node_modules")); err != nil {
			t.Fatal(err)
		}
	}
	layouts := []inventory.Layout{Layout{}}
	found := inventory.Take(t.Context(), inventory.Request{Root: root, Places: []string{"/"}, Layouts: layouts, Memory: inventory.NewMemory(layouts)})
	if len(found.Packages) != 2 || len(found.Bounds) > 0 {
		t.Errorf("%d packages, met are %v", len(found.Packages), found.Bounds)
	}
}
