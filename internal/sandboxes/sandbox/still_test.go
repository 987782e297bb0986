package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestAPausedSandboxIsShownNoKernels: while it is paused, somebody builds a root in the project that it shows.
func TestAPausedSandboxIsShownNoKernels(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("takes root")
	}
	d := newStudio(t)
	project := t.TempDir()
	at := filepath.Join(project, "proc")
	must(t, os.Mkdir(at, 0o755))
	req := d.request(house)
	req.Mounts = append(req.Mounts, mountpolicy.Mount{Source: project, Destination: "/built"})
	s := d.create(req)
	must(t, d.Pause(t.Context(), s.Info().ID))
	must(t, unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
	_, err := d.Resume(t.Context(), s.Info().ID)
	must(t, unix.Unmount(at, unix.MNT_DETACH))
	if !errors.Is(err, fault.ErrConflict) {
		t.Errorf("with the host's /proc in its project it goes on: %v", err)
	}
	if _, err := d.Resume(t.Context(), s.Info().ID); err != nil { // the control
		t.Error(err)
	}
}
