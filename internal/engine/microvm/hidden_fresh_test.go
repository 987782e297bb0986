package microvm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
)

// TestFreshWhatIsHiddenWasMoved: another sandbox, which may write to the directory, moved what an
// ignore file hides, after that was looked at and before the machine gets its copy of the directory. The machine is
// refused, as a container of gVisor and of runc is (mounts.TestPinsCover). The control is what was not moved.
func TestFreshWhatIsHiddenWasMoved(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	freshMust(t, err)
	conf := filepath.Join(dir, "project", "conf")
	freshMust(t, os.MkdirAll(conf, 0o755))
	none := filepath.Join(dir, "none")
	freshMust(t, os.WriteFile(none, nil, 0o644))
	freshMust(t, os.WriteFile(filepath.Join(conf, "key"), []byte("what nobody inside may read"), 0o644))
	identity := func(path string) hostpath.Identity {
		p, err := hostpath.Resolve(path, nil)
		freshMust(t, err)
		defer p.Close()
		return p.ID
	}
	spec := engine.Spec{
		Limits: engine.Limits{MemoryBytes: 1 << 30, DiskBytes: 1 << 30}, Owner: engine.Owner{UID: 1000, GID: 1000, HostUID: os.Geteuid(), HostGID: os.Getegid()},
		Mounts: []engine.Mount{
			{Source: filepath.Dir(conf), Destination: "/w", ReadOnly: true, Origin: identity(filepath.Dir(conf))},
			{Source: none, Destination: "/w/conf/key", ReadOnly: true, Around: identity(conf)},
		},
	}
	if _, err := lay(t.Context(), spec); err != nil {
		t.Fatal("the control:", err)
	}
	freshMust(t, os.Rename(conf, conf+"2"))
	freshMust(t, os.Mkdir(conf, 0o755))
	freshMust(t, os.WriteFile(filepath.Join(conf, "key"), nil, 0o644))
	if _, err := lay(t.Context(), spec); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("the machine is shown conf2/key, which is hidden: %v", err)
	}
}

func freshMust(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
