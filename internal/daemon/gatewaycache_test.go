package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/config"
)

// TestTheGatewayPassesThrough: what a daemon with a umask of 077 has left does not shut the
// gateway's user out of its root directory; its own folder is its own alone.
func TestTheGatewayPassesThrough(t *testing.T) {
	t.Parallel()
	paths := config.Paths{State: t.TempDir(), Runtime: t.TempDir()}
	etc, own := filepath.Join(paths.Cache(), "etc"), filepath.Join(paths.Cache(), ArtifactsDir)
	if err := errors.Join(os.MkdirAll(etc, 0o700), os.Mkdir(own, 0o755)); err != nil {
		t.Fatal(err)
	}
	g := newGatewayProcess(&Daemon{opts: Options{Paths: paths, Config: config.Config{GatewayUID: 12345}, Log: quiet()}})
	if err := g.prepareCache(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]fs.FileMode{paths.Cache(): 0o755, etc: 0o755, own: 0o700} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v, want %v", dir, info.Mode(), err, want)
		}
	}
}
