package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
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

// TestOthersNeverSeeTheGatewaysFiles: where the gateway's folders can't be made ready, its own
// is as shut as it was. A program that opens it for a moment leaves it open here.
func TestOthersNeverSeeTheGatewaysFiles(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("only root's gateway has a resolver's files of its own: run the tests as root")
	}
	paths := config.Paths{State: t.TempDir(), Runtime: t.TempDir()}
	own := filepath.Join(paths.Cache(), ArtifactsDir)
	// A folder in the place of a file, so that the last step fails.
	inTheWay := filepath.Join(paths.Cache(), "etc", "hosts", "x")
	if err := errors.Join(os.MkdirAll(inTheWay, 0o755), os.Mkdir(own, 0o700)); err != nil {
		t.Fatal(err)
	}
	g := newGatewayProcess(&Daemon{opts: Options{Paths: paths, Config: config.Config{GatewayUID: 12345}, Log: quiet()}})
	if err := g.prepareCache(); err == nil {
		t.Fatal("INCONCLUSIVE: nothing failed")
	}
	if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v %v", own, info.Mode(), err)
	}
}
