package differential

import (
	"os"
	"path/filepath"
	"testing"
)

// releasedFiles are the manifests and lockfiles in some released packages, each package in a directory of its own. They come from the
// machine's registries, by their clients, once.
func releasedFiles(t *testing.T) string {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("testdata", "released.py"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(installed(t, "released", append(os.Environ(), "GOTOOLCHAIN=local", "GOWORK=off"), "python3", script, "files"), "files")
}
