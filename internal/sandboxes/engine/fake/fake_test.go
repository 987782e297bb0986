package fake_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/fake"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func TestSuite(t *testing.T) {
	enginetest.Suite(t, func(t *testing.T) *enginetest.Subject {
		t.Helper()
		dir, err := os.MkdirTemp("", "fake") //nolint:usetesting // A socket's path must be short.
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		k := enginetest.StartKeeper(t, filepath.Join(dir, "keeper.sock"))
		reopen := func() engine.Engine { return fake.New(filepath.Join(dir, "state"), k) }
		return &enginetest.Subject{
			Engine: reopen(), Reopen: reopen, Keeper: k, Files: true,
			Own: fake.New(filepath.Join(dir, "state"), k).Own, Socket: filepath.Join(dir, "keeper.sock"),
			Spec: func(id string) engine.Spec {
				root := filepath.Join(dir, "root-"+id)
				return engine.Spec{
					ID: id, Root: engine.Root{Kind: engine.RootDir, Path: "/"},
					Init: enginetest.PlainInit(t, root), Env: []string{"PATH=/bin:/usr/bin"},
				}
			},
			Traces: func(id string) []string {
				found, err := filepath.Glob(filepath.Join(dir, "state", "sandboxes", id, "fake", "*"))
				if err != nil {
					t.Error(err)
				}
				return found
			},
		}
	})
}
